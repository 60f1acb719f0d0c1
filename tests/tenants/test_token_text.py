"""The text of access tokens."""

import random
import string

from tenants.tokens import new_token, parse_token

ALPHABET = string.ascii_letters + string.digits + "_"


def test_a_token_has_seventy_characters_and_says_whose_product_it_is_of():
    text = new_token().reveal()
    assert len(text) == 70
    assert text.startswith("brk_")


def test_a_token_can_be_taken_apart_again():
    token = new_token()
    parsed = parse_token(token.reveal())
    assert parsed.token_id == token.token_id
    assert parsed.secret.reveal() == token.secret.reveal()


def test_tokens_do_not_repeat():
    assert len({new_token().token_id for _ in range(1000)}) == 1000


def test_every_typing_error_of_one_character_is_found_without_a_query():
    text = new_token().reveal()
    chance = random.Random(7)
    for index in range(len(text)):
        typo = chance.choice(ALPHABET.replace(text[index], ""))
        assert parse_token(text[:index] + typo + text[index + 1 :]) is None


def test_rubbish_is_no_token():
    text = new_token().reveal()
    for rubbish in (
        "",
        "brk_",
        text[:-1],
        text + "0",
        text.upper(),
        text + "\n",
        "x" * 70,
        text.replace("_", "-"),
    ):
        assert parse_token(rubbish) is None


def test_a_token_does_not_print():
    token = new_token()
    assert token.secret.reveal()[:8] not in repr(token) + str(token)
