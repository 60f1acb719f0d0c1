"""What is said to browsers, what is refused at the door, and that Django has nothing to add."""

import os
import socket
import subprocess
import sys

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.support.web_server import serving

PRODUCTION = {
    "HTTPS": "1",
    "DEBUG": "0",
    "BROKER_LOCAL": "0",
    "ALLOWED_HOSTS": "broker.example.test",
    "SECRET_KEY": "a long and random-looking text 7Hq2mZ0pT93xLw-Kd84Vn5Rb1Ys6Gc",
}


def test_djangos_deployment_checks_are_clean():
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        env={**os.environ, **PRODUCTION},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no issues" in done.stdout


@pytest.mark.django_db
def test_every_answer_carries_the_security_headers(client, api, alice):
    for answer in (client.get("/admin/login/"), api(alice.token).get("/api/v1/keys")):
        assert answer["X-Frame-Options"] == "DENY"
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Referrer-Policy"] == "same-origin"
        assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]
    assert answer["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "headers",
    [{f"X-Many-{number}": "x" for number in range(120)}, {"X-Large": "x" * 40_000}],
    ids=["many", "large"],
)
def test_a_head_that_no_honest_client_sends_is_refused(client, headers):
    answer = client.get("/api/v1/keys", headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (431, "headers_too_large")


def answer_to(base_url, head, pieces):
    """What comes back on a bare connection, and how many of the pieces had been sent by then."""
    host, port = base_url.removeprefix("http://").split(":")
    sent = 0
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        try:
            connection.sendall(head)
            for piece in pieces:
                connection.sendall(piece)
                sent += 1
            answer = connection.recv(65536)
        except OSError:  # it was closed while we spoke
            answer = b""
    return answer, sent


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("announced", [True, False], ids=["announced", "chunked"])
def test_of_a_body_without_end_no_more_is_read_than_is_allowed(alice, announced):
    length = b"Content-Length: 209715200" if announced else b"Transfer-Encoding: chunked"
    head = (
        b"POST /api/v1/keys HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer " + alice.token.encode() + b"\r\n" + length + b"\r\n\r\n"
    )
    megabyte = b" " * 0x100000
    piece = megabyte if announced else b"100000\r\n" + megabyte + b"\r\n"
    with serving() as base_url:
        answer, _ = answer_to(base_url, head, [piece] * (1 if announced else 5))
        assert b"413" in answer.partition(b"\r\n")[0]
        assert b"body_too_large" in answer
        _, sent = answer_to(base_url, head, [piece] * 200)
    assert sent < 100


@pytest.mark.django_db
def test_guessing_passwords_is_stopped_for_that_name_and_address_only():
    User.objects.create_superuser("operator", password="correct horse battery")
    page = "/admin/login/"
    wrong = {"username": "operator", "password": "guess"}
    right = {"username": "operator", "password": "correct horse battery"}
    guesser = Client(REMOTE_ADDR="203.0.113.7")
    answers = [guesser.post(page, wrong).status_code for _ in range(6)]
    assert answers[0] == 200
    assert answers[-1] == 429
    assert guesser.post(page, right).status_code == 429
    assert Client(REMOTE_ADDR="198.51.100.4").post(page, right).status_code == 302


@pytest.mark.django_db
def test_keys_are_switched_off_and_on_in_bulk(admin_client, api, alice):
    made = [
        api(alice.token).post("/api/v1/keys", {"ref": f"KEY_{n}", "value": "x" * 30}).json()["id"]
        for n in range(3)
    ]
    for action, status in (("disable_chosen", "disabled"), ("enable_chosen", "active")):
        admin_client.post(
            "/admin/tenants/providerkey/", {"action": action, "_selected_action": made[:2]}
        )
        listed = api(alice.token).get("/api/v1/keys").json()["data"]
        assert [row["status"] for row in listed] == ["active", status, status]
