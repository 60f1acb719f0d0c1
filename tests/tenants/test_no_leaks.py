"""A marker is planted as a key value, and everything that was written is searched for it."""

import logging
import traceback

import pytest
from django.db import connection
from django.test import Client

from tenants import vault
from tenants.adapters import DjangoSecrets
from tenants.encryption import Secret, Tampered
from tenants.models import ProviderKey
from tenants.services import keys as key_services
from tenants.services.keys import add_key, update_key
from tenants.tokens import parse_token

MARKER = "sk-fake-7Hq2mZ0pTENANTA93xLw"
PIECES = {MARKER[start : start + 8] for start in range(len(MARKER) - 7)}


def assert_clean(text):
    assert not [piece for piece in PIECES if piece in text]


def whole_database():
    """Every row of every table, bytes as text and as hex."""
    with connection.cursor() as cursor:
        found = []
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT t::text FROM "{table}" t')  # noqa: S608
            found += [row[0] for row in cursor.fetchall()]
    return found


@pytest.fixture(autouse=True)
def everything_logged(caplog):
    caplog.set_level(logging.DEBUG)
    return caplog


def test_no_answer_log_or_row_holds_a_piece_of_a_stored_key(api, alice, bob, charlie, caplog):
    client = api(alice.token)
    body = {"ref": "OPENAI_API_KEY", "value": f"{MARKER}\r\n"}
    endpoint = {"name": "e", "model": "m"}
    cut_off = b'{"value": "' + MARKER.encode() + b'"'
    made = client.post("/api/v1/keys", body)
    path = f"/api/v1/keys/{made.json()['id']}"
    answers = [
        made,
        client.post("/api/v1/keys", body),
        client.post("/api/v1/keys", {**body, "value": f"{MARKER}\n{MARKER}"}),
        client.post("/api/v1/keys", {**body, "value": f"{MARKER}\u200b"}),
        client.post("/api/v1/keys", {"value": MARKER}),
        client.post("/api/v1/keys", {**body, "scope": "no-such-scope"}),
        client.post("/api/v1/keys", cut_off, content_type="application/json"),
        client.post("/api/v1/endpoints", {**endpoint, "base_url": f"https://a.example.test/?key={MARKER}"}),
        client.post("/api/v1/endpoints", {**endpoint, "base_url": f"https://{MARKER}@a.example.test/"}),
        client.patch(path, {"value": MARKER, "label": "replaced"}),
        client.patch(path, {"value": [MARKER]}),
        client.patch(path, {"status": MARKER}),
        client.get("/api/v1/keys"),
        client.get(path),
        client.get("/api/v1/tokens"),
        api(bob.token).get(path),
        api(charlie.token).patch(path, {"value": MARKER}),
        api(MARKER).get("/api/v1/keys"),
        client.delete(path),
    ]  # fmt: skip
    for answer in answers:
        assert answer.status_code < 500
        assert_clean(answer.content.decode())
        assert_clean(str(answer.headers))
    assert_clean(caplog.text)
    assert_clean("".join(whole_database()))


def test_the_raw_rows_hold_it_in_no_spelling(alice):
    add_key(scope=alice.scope, ref="A_KEY", value=Secret(MARKER), label="label")
    rows = "".join(whole_database())
    assert_clean(rows)
    for piece in PIECES:
        assert piece.encode().hex() not in rows


def test_nothing_that_holds_a_key_prints_it(alice):
    key = add_key(scope=alice.scope, ref="A_KEY", value=Secret(MARKER))
    opened = vault.open_value(ProviderKey.objects.select_related("data_key").get())
    assert opened.reveal() == MARKER
    for each in (
        key,
        opened,
        key.__dict__,
        vault.keyring(),
        vault.data_keys(),
        DjangoSecrets({"A": MARKER}),
    ):
        assert_clean(f"{each} {each!r}")


def everything_about(error):
    """What an error tracker collects: texts, arguments, attributes, and every frame's variables."""
    chain = []
    while error is not None:
        chain.append(error)
        error = error.__cause__ or error.__context__
    text = "".join(f"{each!r} {each.args} {vars(each)}" for each in chain)
    report = traceback.TracebackException.from_exception(chain[0], capture_locals=True)
    return text + "".join(report.format())


@pytest.mark.parametrize("step", ["data_key_for_sealing", "fingerprint_of", "hint"])
def test_a_fault_of_ours_while_storing_tells_no_error_tracker(alice, monkeypatch, step):
    """The one place where a test breaks our own part: the fault has to come from somewhere."""
    key = add_key(scope=alice.scope, ref="A_KEY", value=Secret("b" * 30))

    def fail(*args, **kwargs):
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(key_services, step, fail)
    for store in (
        lambda: add_key(scope=alice.scope, ref="A_KEY", value=Secret(MARKER)),
        lambda: update_key(key=key, value=Secret(MARKER)),
    ):
        with pytest.raises(RuntimeError) as failed:
            store()
        assert_clean(everything_about(failed.value))


def test_a_fault_of_ours_behind_the_view_tells_no_error_tracker(api, alice, monkeypatch, caplog):
    monkeypatch.setattr(key_services, "hint", lambda value: 1 / 0)
    client = api(alice.token)
    with pytest.raises(ZeroDivisionError) as failed:
        client.post("/api/v1/keys", {"ref": "A_KEY", "value": MARKER})
    ours = [
        frame
        for frame in traceback.TracebackException.from_exception(
            failed.value, capture_locals=True
        ).stack
        if "/tenants/" in frame.filename and "/tests/" not in frame.filename
    ]
    assert len(ours) >= 3
    assert_clean(str([frame.locals for frame in ours]))
    assert_clean(caplog.text)
    client.raise_request_exception = False
    answer = client.post("/api/v1/keys", {"ref": "A_KEY", "value": MARKER})
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")
    assert_clean(answer.content.decode())


def test_a_key_that_does_not_open_is_logged_by_its_id_alone(alice, caplog):
    key = add_key(scope=alice.scope, ref="A_KEY", value=Secret(MARKER))
    key.sealed = bytes(key.sealed)[:-1]
    assert not vault.is_readable(key)
    assert str(key.pk) in caplog.text
    assert_clean(caplog.text)
    with pytest.raises(Tampered) as failed:
        vault.data_keys().open(vault.wrapped(key.data_key), vault.place_of_value(key.pk), b"")
    assert_clean(everything_about(failed.value))


def test_the_admin_takes_a_key_in_and_never_gives_it_out(alice, admin_user, caplog):
    client = Client()
    client.force_login(admin_user)
    url = "/admin/tenants/providerkey/"
    form = {
        "scope": str(alice.scope.pk),
        "ref": "A_KEY",
        "label": "",
        "priority": "100",
        "status": "active",
    }
    pages = [
        client.post(f"{url}add/", {**form, "value": MARKER}, follow=True),
        client.post(f"{url}add/", {**form, "value": MARKER}, follow=True),
        client.post(f"{url}add/", {**form, "ref": "wrong", "value": MARKER}),
        client.post(f"{url}add/", {**form, "value": f"{MARKER} {MARKER}"}),
    ]
    pk = ProviderKey.objects.get().pk
    pages += [
        client.post(f"{url}{pk}/change/", {**form, "value": MARKER, "label": "x"}, follow=True),
        client.get(f"{url}{pk}/change/"),
        client.get(url),
        client.get(f"{url}{pk}/history/"),
        client.get(f"{url}{pk}/delete/"),
    ]
    for page in pages:
        assert page.status_code == 200
        assert_clean(page.content.decode())
    assert_clean(caplog.text)
    assert_clean("".join(whole_database()))


def test_a_token_is_nowhere_but_in_the_answer_that_made_it(api, alice, caplog):
    made = (
        api(alice.token).post("/api/v1/tokens", {"name": "t", "permissions": ["keys:write"]}).json()
    )
    secret = parse_token(made["token"]).secret.reveal()
    client = api(made["token"])
    later = [
        client.get("/api/v1/tokens"),
        client.get("/api/v1/nowhere"),
        client.post("/api/v1/keys", {}),
    ]
    written = (
        caplog.text + "".join(whole_database()) + "".join(each.content.decode() for each in later)
    )
    assert secret[:8] not in written
