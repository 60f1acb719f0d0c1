"""No key leaves in a text."""

from __future__ import annotations

import pytest

from llmbroker.wire.scrub import scrubbed

KEY = "tenant-secret-7Hq2mZ0pTENANTA93xLw"


def pieces(secret: str) -> list[str]:
    return [secret[at : at + 8] for at in range(len(secret) - 7)]


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: {KEY}",
        f"{KEY}{KEY}",
        f"the key ends in {KEY[-12:]} and starts with {KEY[:9]}",
        f"{KEY[:20]}…",
        f'{{"key":"{KEY}"}}',
        f"a{KEY}b",
    ],
)
def test_no_eight_characters_of_a_secret_are_left(text: str) -> None:
    clean = scrubbed(text, [KEY])

    assert not any(piece in clean for piece in pieces(KEY))
    assert "***" in clean


def test_a_secret_is_found_without_the_line_end_it_was_pasted_with() -> None:
    assert scrubbed(f"bad key {KEY}", [f" {KEY}\r\n"]) == "bad key ***"


def test_a_placeholder_does_not_blot_out_ordinary_words() -> None:
    assert scrubbed("not an ollama key", ["", "x", "key"]) == "not an ollama key"


def test_a_short_secret_is_taken_out_whole() -> None:
    assert scrubbed("the key s3cr3t is bad", ["s3cr3t"]) == "the key *** is bad"


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-abcdefgh12345",
        "gsk_abcdefgh12345",
        "AIzaSyA1234567890abcdefghij",
        "Authorization: Bearer abcdefgh12345",
        'headers={"x-api-key": "abcdefgh12345"}',
        "https://x.test/v1beta?key=abcdefgh12345&alt=sse",
        "https://x.test/?access_token=abcdefgh12345",
        "https://user:abcdefgh12345@x.test/v1",
        "eyJhbGciOiJIUzI1NiJ9.abcdefgh12345.sig",
    ],
)
def test_what_looks_like_a_key_is_taken_out_though_nobody_named_it(text: str) -> None:
    assert "abcdefgh" not in scrubbed(text).replace("Bearer ***", "")


@pytest.mark.parametrize(
    "text",
    [
        "The model `gpt-9` does not exist",
        "max_tokens must be at most 4096",
        "task-oriented risk-averse disk-based",
        "see https://x.test/docs?page=2",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert scrubbed(text, [KEY]) == text
