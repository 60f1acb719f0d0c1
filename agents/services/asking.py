"""How a run asks models, beside its messages and tools."""

from __future__ import annotations

from typing import Any

from agents.models import Run
from agents.structured import response_format


def asked_of_models(run: Run) -> dict[str, Any]:
    """Arguments of ``chat``."""
    return {
        "operation": run.operation,
        "trace_id": run.trace_id,
        "prefer": run.prefer,
        "response_format": response_format(run.output_schema),
    }
