"""A run's events as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agents.models import Event, Run, Step
from agents.streams.frames import DELTA, RESET

LONGEST = 300


def line_of(event: Event) -> str | None:
    """What an event says to somebody who watches; None for what they need not see."""
    match event.type:
        case "step.completed":
            return _step(event)
        case "error":
            return f"  ! {event.data.get('message', '')}"
        case "run.queued" | "run.in_progress" | "run.requires_action" | "run.cancelling":
            return f"  · {event.type.removeprefix('run.').replace('_', ' ')}"
    return None


def summary_of(run: Run) -> str:
    """How a run stands now, and why."""
    reason = run.incomplete_reason or (run.last_error or {}).get("message")
    tokens = (run.usage or {}).get("total_tokens")
    said = [f"run {run.id} {run.status}", reason, tokens and f"{tokens} tokens"]
    return ", ".join(str(part) for part in said if part)


class Speech:
    """What a model says, shown while it says it."""

    def __init__(self, show: Callable[[str], object]) -> None:
        """``show`` writes text as it is, at once."""
        self._show = show
        self._text = ""
        self.last = ""
        """What was said before the line was closed."""

    def hear(self, event: Mapping[str, Any]) -> None:
        """Show what an event tells live; others are for the log to tell."""
        if event["type"] == DELTA:
            self._text += event["data"]["delta"]
            self._show(event["data"]["delta"])
        elif event["type"] == RESET:
            self.close()
            self._show("  ! broke off, and begins anew\n")

    def close(self) -> None:
        """End the line, so that another can be written."""
        if self._text:
            self._show("\n")
            self.last, self._text = self._text, ""


def _step(event: Event) -> str | None:
    step = Step.objects.filter(run=event.run_id, number=event.data.get("step")).first()
    if step is None:
        return None
    if step.kind == Step.Kind.TOOL_CALL:
        return f"{step.number:>3} {step.name} → {_short(step.result or '')}"
    calls = (step.message or {}).get("tool_calls") or ()
    asked = ", ".join(call["function"]["name"] for call in calls)
    return f"{step.number:>3} {step.llm_name} {f'asks for {asked}' if asked else 'answers'}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
