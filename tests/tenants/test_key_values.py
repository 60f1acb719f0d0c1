"""What can be the value of a provider key (the kind: a key that ends in an error text)."""

import pytest

from tenants.errors import InvalidInput
from tenants.key_values import hint, key_value

KEY = "sk-fake-7Hq2mZ0pTENANTA93xLw"


@pytest.mark.parametrize(
    "text", [KEY, f"{KEY}\r\n", f"  {KEY}\t", f"\u00a0{KEY}\u2003", f"\n{KEY}"]
)
def test_white_space_around_a_key_is_cut_off(text):
    assert key_value(text).reveal() == KEY


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sk-fake-7H\nX-Evil: 1", "space or line end"),
        ("sk-fake-7H\r\nX-Evil: 1", "space or line end"),
        (f"{KEY}\u200b", "outside ASCII"),
        (f"{KEY[:9]}é{KEY[9:]}", "outside ASCII"),
        (f"{KEY[:9]}ключ", "outside ASCII"),
        (f"{KEY[:9]}\x00{KEY[9:]}", "control character"),
        (f"{KEY[:9]}\x7f{KEY[9:]}", "control character"),
        (f"{KEY[:9]}\ud83d", "outside ASCII"),
        (f"Bearer {KEY}", "space or line end"),
        (KEY * 400, "longer than"),
        ("", "empty"),
        (" \r\n", "empty"),
    ],
)
def test_a_value_that_cannot_travel_in_a_header_is_refused_without_repeating_it(text, says):
    with pytest.raises(InvalidInput, match=says) as refused:
        key_value(text)
    error = refused.value
    told = f"{error} {error!r} {error.args} {vars(error)}"
    assert "sk-fake" not in told
    assert "Evil" not in told
    assert error.param == "value"


def test_the_hint_is_the_last_four_of_a_long_key_and_nothing_of_a_short_one():
    assert hint(key_value(KEY)) == "3xLw"
    assert hint(key_value("short-key")) == ""
