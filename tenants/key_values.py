"""What may be stored as the value of a provider key."""

from tenants.encryption import Secret
from tenants.errors import InvalidInput

LONGEST = 8192
SHORTEST_WITH_HINT = 20


def key_value(text: str, *, param: str = "value") -> Secret[str]:
    """The key in ``text``, without the white space around it.

    Raises InvalidInput if it could not travel in an HTTP header. No message repeats the value.
    """
    value = text.strip()
    if not value:
        raise _refused("The key is empty.", param)
    if len(value) > LONGEST:
        raise _refused(f"The key is longer than {LONGEST} characters.", param)
    for position, character in enumerate(value, start=1):
        if not "!" <= character <= "~":
            raise _refused(
                f"Character {position} of the key is {_kind(character)}:"
                " a key holds only visible ASCII characters. Copy it again.",
                param,
            )
    return Secret(value)


def hint(value: Secret[str]) -> str:
    """The last four characters, where that gives away little of the whole."""
    return value.reveal()[-4:] if len(value.reveal()) >= SHORTEST_WITH_HINT else ""


def _kind(character: str) -> str:
    if character.isspace():
        return "a space or line end"
    return "a control character" if character.isascii() else "outside ASCII"


def _refused(message: str, param: str) -> InvalidInput:
    return InvalidInput(message, code="invalid_key_value", param=param)
