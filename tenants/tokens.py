"""The text of an access token: ``brk_<id 16>_<secret 43><crc32 6>``, base62, 70 characters.

The id finds the row, the secret has 256 random bits, and the checksum lets rubbish and typing
errors be refused without a query. GitHub's tokens have the same three parts.
"""

import re
import secrets
import string
import zlib
from dataclasses import dataclass

from tenants.encryption import Secret

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_FORM = re.compile(r"(brk_([0-9A-Za-z]{16})_([0-9A-Za-z]{43}))([0-9A-Za-z]{6})", re.ASCII)


@dataclass(frozen=True)
class TokenText:
    """The parts of a token. Only ``token_id`` may be stored or shown."""

    token_id: str
    secret: Secret[str]

    def reveal(self) -> str:
        """The whole token, to be shown to its owner once."""
        body = f"brk_{self.token_id}_{self.secret.reveal()}"
        return body + _checksum(body)


def new_token() -> TokenText:
    """A random token."""
    return TokenText(_random(16), Secret(_random(43)))


def parse_token(text: str) -> TokenText | None:
    """The parts of ``text``, or None if it is no token."""
    match = _FORM.fullmatch(text)
    if match is None or _checksum(match[1]) != match[4]:
        return None
    return TokenText(match[2], Secret(match[3]))


def _random(length: int) -> str:
    return "".join(secrets.choice(_BASE62) for _ in range(length))


def _checksum(body: str) -> str:
    number = zlib.crc32(body.encode())
    digits = []
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits.append(_BASE62[digit])
    return "".join(reversed(digits))
