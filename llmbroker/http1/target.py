"""Where a URL leads: the origin to connect to, and the head of a request to it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from yarl import URL


@dataclass(frozen=True, slots=True)
class Origin:
    """Requests to one origin may share a connection."""

    host: str
    port: int
    is_tls: bool


@dataclass(frozen=True, slots=True)
class Target:
    """``head`` is the beginning of every request there; ``login`` is what the URL itself holds."""

    origin: Origin
    head: bytes
    login: bytes | None = field(repr=False)

    def request(self, headers: Mapping[str, str], body: bytes) -> bytes:
        """A POST as it goes over the wire."""
        login = None if "Authorization" in headers else self.login
        fields = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        return b"%b%b%bContent-Length: %d\r\n\r\n%b" % (
            self.head,
            fields.encode("latin-1"),
            login or b"",
            len(body),
            body,
        )


@lru_cache(maxsize=4096)
def target_of(url: str) -> Target:
    """Raises ValueError for what is no URL of http or https."""
    parsed = URL(url)  # encodes whatever could end a line
    if parsed.scheme not in ("http", "https") or not parsed.raw_host or not parsed.port:
        raise ValueError("no URL of http or https")
    head = (
        f"POST {parsed.raw_path_qs} HTTP/1.1\r\n"
        f"Host: {parsed.host_port_subcomponent}\r\n"
        "User-Agent: llmbroker\r\n"
        "Accept-Encoding: gzip, deflate\r\n"
    )
    origin = Origin(parsed.raw_host, parsed.port, parsed.scheme == "https")
    return Target(origin, head.encode("ascii"), _login(parsed))


def _login(url: URL) -> bytes | None:
    if url.user is None and url.password is None:
        return None
    pair = f"{url.user or ''}:{url.password or ''}".encode()
    return b"Authorization: Basic %b\r\n" % base64.b64encode(pair)
