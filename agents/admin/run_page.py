"""What a run's page shows of it: its conversation, its steps, its calls."""

from collections.abc import Mapping, Sequence

from django.template.loader import render_to_string

from agents.models import Run, Step
from agents.run_calls import RunCall, calls_of

RETRY_BUTTON = "retry_from"
MOST_EVENTS = 1000
HEADERS = ("Step", "Model", "Status", "ms", "Tokens", "Cost, $", "Paid by")
LABELS: Mapping[str, str] = {
    Step.Status.COMPLETED: "success",
    Step.Status.FAILED: "danger",
    Step.Status.CANCELLED: "warning",
}


def conversation(run: Run) -> str:
    """What was asked, message by message."""
    return render_to_string("admin/agents/conversation.html", {"messages": run.messages})


def timeline(run: Run) -> str:
    """The steps in order, and the log of events."""
    steps = list(run.steps.all())
    for step in steps:
        step.label = LABELS.get(step.status, "info")  # type: ignore[attr-defined]
    context = {
        "steps": steps,
        "events": run.events.all()[:MOST_EVENTS],
        "retry_button": RETRY_BUTTON if run.is_over else None,
    }
    return render_to_string("admin/agents/timeline.html", context)


def costs(run: Run) -> str:
    """The attempts at models, as the journal has them."""
    calls = calls_of(run)
    known = [call.cost_micros for call in calls if call.cost_micros is not None]
    context = {
        "table": {"headers": HEADERS, "rows": _rows(calls)},
        "dollars": sum(known) / 1_000_000 if known else None,
        "unknown": len(calls) - len(known),
    }
    return render_to_string("admin/agents/costs.html", context)


def _rows(calls: Sequence[RunCall]) -> list[list[object]]:
    return [
        [
            "–" if call.step is None else call.step,
            call.llm_name,
            call.status,
            "–" if call.latency_ms is None else call.latency_ms,
            "–" if call.tokens is None else call.tokens,
            "unknown" if call.cost_micros is None else f"{call.cost_micros / 1_000_000:.6f}",
            call.paid_by or "nobody",
        ]
        for call in calls
    ]
