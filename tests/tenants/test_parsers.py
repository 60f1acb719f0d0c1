"""Malformed bodies: a 400 in our shape, before anything is looked at or written."""

import pytest

from tenants.models import Endpoint

BODIES = {
    "not_json": b'{"name":',
    "empty_text": b" ",
    "invalid_utf8": b'{"name": "\xff\xfe"}',
    "utf16": '{"name": "m"}'.encode("utf-16"),
    "array": b"[]",
    "string": b'"x"',
    "null": b"null",
    "number": b"1",
    "nan": b'{"weight": NaN}',
    "infinity": b'{"weight": -Infinity}',
    "overflowing_float": b'{"weight": 1e999}',
    "huge_integer": b'{"weight": ' + b"9" * 5000 + b"}",
    "integer_beyond_64_bits": b'{"parallel": 9223372036854775808}',
    "bottomless": b"[" * 100_000,
    "bottomless_object": b'{"a":' * 100_000,
    "deep": b'{"a":' + b"[" * 120 + b"]" * 120 + b"}",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_malformed_body_is_refused_in_our_shape(api, alice, body):
    answer = api(alice.token).post("/api/v1/endpoints", body, content_type="application/json")
    error = answer.json()["error"]
    assert answer.status_code == 400
    assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_json")
    assert len(error["message"]) < 200
    assert not Endpoint.objects.exists()


def test_a_body_with_a_byte_order_mark_is_read(api, alice):
    body = b"\xef\xbb\xbf" + '{"name": "токен 🔑", "permissions": ["runs:read"]}'.encode()
    answer = api(alice.token).post("/api/v1/tokens", body, content_type="application/json")
    assert answer.status_code == 201
    assert answer.json()["name"] == "токен 🔑"


def test_brackets_inside_texts_are_not_depth(api, alice):
    answer = api(alice.token).post(
        "/api/v1/tokens", {"name": "[" * 150, "permissions": ["runs:read"]}
    )
    assert answer.status_code == 201


@pytest.mark.parametrize("content_type", ["text/plain", "", "application/x-www-form-urlencoded"])
def test_other_content_types_are_not_guessed_at(api, alice, content_type):
    answer = api(alice.token).post("/api/v1/keys", b'{"ref": "A_KEY"}', content_type=content_type)
    assert answer.status_code in (400, 415)
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_a_body_over_the_limit_is_refused(api, alice, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    answer = api(alice.token).post("/api/v1/tokens", {"name": "x" * 2000, "permissions": []})
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "body_too_large"
