"""Which base URLs an endpoint may have.

The transport checks every resolved address again when it connects; this refuses on saving what
can be seen in the text: a key in the URL would be printed with every error, and an address
instead of a name points into a private network.
"""

import re
from urllib.parse import urlsplit

from llmbroker.addresses import AddressPolicy, AddressRefusedError
from tenants.errors import InvalidInput

# At least two labels and a last one of letters: no spelling of an IPv4 or IPv6 address fits.
_PUBLIC_NAME = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]")
_PRIVATE_ZONES = (".internal", ".local", ".localhost", ".home.arpa", ".lan")


def endpoint_url(text: str, *, policy: AddressPolicy, param: str = "base_url") -> str:
    """``text`` in the form it is stored; InvalidInput says what is wrong with it."""
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise InvalidInput("The URL holds characters that a URL cannot hold.", param=param)
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise InvalidInput("This is no URL.", param=param) from None
    if url.username is not None or url.password is not None:
        raise InvalidInput(
            "Store the key as a key: the URL holds no user or password.", param=param
        )
    if url.query or url.fragment or "?" in text or "#" in text:
        raise InvalidInput("Store the key as a key: the URL has no query.", param=param)
    host = (url.hostname or "").rstrip(".")
    if url.scheme not in ("https", "http") or not host or port == 0:
        raise InvalidInput("The URL starts with https:// and a host.", param=param)
    try:
        policy.check_url(text)
    except AddressRefusedError as error:
        raise InvalidInput(f"This address cannot be used: {error}.", param=param) from None
    if not policy.names(host) and not _is_public(host):
        raise InvalidInput("The host is not a public name.", param=param)
    return text.rstrip("/")


def _is_public(host: str) -> bool:
    return bool(_PUBLIC_NAME.fullmatch(host)) and not host.endswith(_PRIVATE_ZONES)
