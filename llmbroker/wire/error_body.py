"""The body of an error answer, whatever its shape: text, HTML, or one of a dozen JSON forms."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from llmbroker.wire.lenient_json import as_mapping, loads
from llmbroker.wire.params import known_param
from llmbroker.wire.retry_after import parse_duration

_LIMIT = 64 * 1024
_MAX_NESTING = 6
_CODE_KEYS = ("code", "type", "error_type", "status", "reason", "error_code", "status_code")
# A gateway's own words ("Provider returned error") say less than what it wraps: that is read first.
_WRAPPING_KEYS = ("raw", "metadata", "error", "errors")
_MESSAGE_KEYS = ("message", "msg", "detail", "error_description", "title")
_ADDING_KEYS = ("innererror", "details", "violations")
_HTML = re.compile(rb"\s*<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_INVISIBLE = re.compile(r"<(script|style|head)\b.*?</\1\s*>|<!--.*?-->", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>?")


@dataclass(slots=True)
class ErrorBody:
    """What an error says.

    ``codes`` are its machine-readable words in lower case, ``status`` an HTTP status that it
    carries inside, ``param`` the parameter that it blames, ``delay`` the seconds to wait.
    """

    message: str = ""
    codes: set[str] = field(default_factory=set)
    status: int | None = None
    param: str | None = None
    code: str | None = None
    delay: float | None = None
    is_html: bool = False


def read_body(body: bytes) -> ErrorBody:
    """Read the body of an HTTP answer."""
    body = body[:_LIMIT]
    if _HTML.match(body):
        return ErrorBody(message=_text_of_html(body.decode("utf-8", "replace")), is_html=True)
    try:
        return read_error(loads(body))
    except ValueError:
        return ErrorBody(message=body.decode("utf-8", "replace"))


def read_error(raw: object) -> ErrorBody:
    """Read an error object out of JSON."""
    found = ErrorBody()
    _collect(raw, found, _MAX_NESTING)
    return found


def _collect(raw: object, found: ErrorBody, nesting: int) -> None:
    if isinstance(raw, str):
        _collect_text(raw, found, nesting)
    elif isinstance(raw, list):
        for item in raw[:8] if nesting else ():
            _collect(item, found, nesting - 1)
    elif isinstance(raw, dict):
        _collect_mapping(raw, found, nesting)


def _collect_text(text: str, found: ErrorBody, nesting: int) -> None:
    """Take ``text`` as the message, unless it is JSON itself, as gateways wrap what they got."""
    if nesting and text.lstrip()[:1] in ("{", "["):
        try:
            _collect(loads(text), found, nesting - 1)
        except ValueError:
            pass
        else:
            return
    found.message = found.message or text


def _collect_mapping(raw: Mapping[str, Any], found: ErrorBody, nesting: int) -> None:
    _collect_codes(raw, found)
    found.param = found.param or _param_of(raw)
    if found.delay is None:
        found.delay = parse_duration(str(raw.get("retryDelay", "")))
    if not nesting:
        return
    for key in _WRAPPING_KEYS:
        _collect(raw.get(key), found, nesting - 1)
    for key in _MESSAGE_KEYS:
        _collect(raw.get(key), found, nesting - 1)
    for key in _ADDING_KEYS:
        if not isinstance(raw.get(key), str):
            _collect(raw.get(key), found, nesting - 1)


def _collect_codes(raw: Mapping[str, Any], found: ErrorBody) -> None:
    for key in _CODE_KEYS:
        value = raw.get(key)
        if isinstance(value, str) and value.strip():
            value = value.strip()
            found.codes.add(value.lower())
            if key == "code":
                found.code = found.code or value
            value = int(value) if value.isascii() and value.isdigit() and len(value) == 3 else 0
        if type(value) is int and 400 <= value <= 599:
            found.status = found.status or value
    found.codes.update(_special_codes(raw))


def _special_codes(raw: Mapping[str, Any]) -> Iterator[str]:
    if raw.get("flagged_input"):
        yield "content_filter"  # OpenRouter's moderation
    quota = raw.get("quotaId")
    if isinstance(quota, str):
        yield "quota_per_day" if "PerDay" in quota else "rate_limit_exceeded"


def _param_of(raw: Mapping[str, Any]) -> str | None:
    """The parameter that OpenAI names in ``param`` and pydantic at the end of ``loc``."""
    loc = raw.get("loc")
    if isinstance(loc, list) and len(loc) == 2 and loc[0] == "body":
        return known_param(loc[1])
    if isinstance(loc, list) and loc[:2] == ["body", "stream_options"]:
        return "stream_options"
    return known_param(raw.get("param"))


def _text_of_html(page: str) -> str:
    title = _TITLE.search(page)
    text = title[1] if title and title[1].strip() else _TAG.sub(" ", _INVISIBLE.sub(" ", page))
    return html.unescape(text)


def is_error(raw: object) -> bool:
    """Whether a body or a chunk that came with status 200 is an error."""
    if isinstance(raw, list) and raw:
        raw = raw[0]
    fields = as_mapping(raw)
    if fields.get("error") or "error" in (fields.get("type"), fields.get("object")):
        return True
    return "choices" not in fields and _tells_of_an_error(fields)


def _tells_of_an_error(fields: Mapping[str, Any]) -> bool:
    """Whether what is no answer holds a code, not 0, with a message, or a list of errors."""
    has_code = any(fields.get(name) for name in ("code", "status", "status_code"))
    return bool(fields.get("errors") or (has_code and (fields.get("message") or fields.get("msg"))))
