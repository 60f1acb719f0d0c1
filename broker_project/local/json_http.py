"""JSON over HTTP with the standard library: for our own API and for model servers nearby."""

import json
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

# A proxy from the environment would carry loopback requests elsewhere.
_OPENER = build_opener(ProxyHandler({}))
LARGEST_ANSWER = 8 * 1024 * 1024


class UnreachableError(Exception):
    """No answer, or none that is JSON."""


@dataclass(frozen=True)
class Answer:
    """A status and the parsed body."""

    status: int
    body: Any


def send_json(
    method: str, url: str, body: object = None, *, token: str = "", timeout: float = 30.0
) -> Answer:
    """Send and parse; an error status is an answer too, no answer is an UnreachableError."""
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, headers, method=method)  # noqa: S310 - our own or configured
    try:
        with _OPENER.open(request, timeout=timeout) as response:
            return Answer(response.status, _parsed(response.read(LARGEST_ANSWER)))
    except HTTPError as error:
        with error:
            return Answer(error.code, _parsed(error.read(LARGEST_ANSWER)))
    except (URLError, OSError, ValueError) as error:
        raise UnreachableError(f"{url}: {getattr(error, 'reason', error)}") from error


def _parsed(text: bytes) -> Any:
    return json.loads(text) if text.strip() else None
