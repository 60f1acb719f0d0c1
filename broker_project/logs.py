"""Log lines as JSON objects, with the ids that lead from one line to the rest of its story."""

import logging
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

import orjson

from llmbroker.attribution import attribution
from llmbroker.text import storable

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
"""Of the request that is being answered; the middleware sets it."""


class JSONFormatter(logging.Formatter):
    """One object a line: when, how grave, who says what, and whose request or run it was."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        part = attribution()
        said: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": storable(record.getMessage()),
            "request_id": request_id.get(),
            "run": part.run,
            "step": part.step,
            "trace_id": getattr(record, "trace_id", None) or _trace_id(),
        }
        if record.exc_info:
            said["exception"] = storable(self.formatException(record.exc_info))
        known = {name: value for name, value in said.items() if value is not None}
        return orjson.dumps(known).decode()


def _trace_id() -> str | None:
    """OpenTelemetry's, where it is installed and in a span."""
    try:
        from opentelemetry import trace  # noqa: PLC0415
    except ImportError:
        return None
    context = trace.get_current_span().get_span_context()
    return f"{context.trace_id:032x}" if context.is_valid else None
