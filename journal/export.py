"""Calls as CSV and as JSON lines, a page at a time: never all in memory, no cursor held open."""

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

import orjson
from django.db.models import QuerySet

from journal.models import Call
from journal.selectors import with_score

PAGE = 1000

COLUMNS = (
    "id",
    "ts",
    "scope_id",
    "operation",
    "trace_id",
    "run",
    "step",
    "llm_name",
    "base_url",
    "model",
    "model_answered",
    "provider_id",
    "key_id",
    "key_source",
    "status",
    "http_status",
    "streamed",
    "first_token_ms",
    "latency_ms",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "cost_micros",
    "price",
    "score",
    "error_class",
    "error_detail",
    "cooldown_until",
)

# What a spreadsheet takes for the start of a formula, also in full width and after blanks.
_FORMULA = re.compile(r"[\t\r\n]|\s*[=+\-@＝＋－＠]")


def as_csv(calls: QuerySet[Call]) -> Iterator[bytes]:
    """A header, then a line for each call, newest first."""
    yield _csv_lines([COLUMNS])
    for page in _pages(calls):
        yield _csv_lines([tuple(map(_cell, row.values())) for row in page])


def as_json_lines(calls: QuerySet[Call]) -> Iterator[bytes]:
    """An object on a line for each call, newest first."""
    for page in _pages(calls):
        yield b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in page)


def inert(text: str) -> str:
    """``text`` as a spreadsheet shows it and does not compute it.

    >>> inert("=1+1"), inert("plain")
    ("'=1+1", 'plain')
    """
    return f"'{text}" if _FORMULA.match(text) else text


def _pages(calls: QuerySet[Call]) -> Iterator[list[dict[str, Any]]]:
    calls = with_score(calls).order_by("-id")
    page = list(calls[:PAGE])
    while page:
        yield [{name: getattr(call, name) for name in COLUMNS} for call in page]
        page = list(calls.filter(id__lt=page[-1].id)[:PAGE])


def _cell(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return inert(value) if isinstance(value, str) else value


def _csv_lines(rows: list[tuple[Any, ...]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()
