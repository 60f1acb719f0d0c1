"""Events as JSON, and as server-sent events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from agents.models import Event, Run

DELTA, REASONING, RESET = "message.delta", "reasoning.delta", "message.reset"
"""What a model says while it says it, and that this is void. It is not kept: `message.completed`
is."""

HELLO = b"retry: 1000\n\n"
KEEP_ALIVE = b": keep-alive\n\n"

ENDS = frozenset(f"run.{status.value}" for status in Run.TERMINAL)
"""After such an event a run's log holds no other."""

# Their text is a step's, and is read with them.
_READ_WHOLE = frozenset({"message.completed"})


def channel_of(run_id: UUID | str) -> str:
    """Where Redis carries the events of a run; of all, as a pattern, with ``*``."""
    return f"broker:run-events:{run_id}"


def event_json(event: Event) -> dict[str, Any]:
    """An event as the API shows it."""
    text = getattr(event, "text", None)
    return {
        "id": str(event.pk),
        "object": "run.event",
        "sequence_number": event.sequence_number,
        "type": event.type,
        "data": event.data if text is None else {**event.data, "text": text},
        "created_at": event.created_at.isoformat().replace("+00:00", "Z"),
    }


def live_json(kind: str, **data: Any) -> dict[str, Any]:
    """An event that is told and not kept."""
    return {"object": "run.event", "type": kind, "data": data}


@dataclass(frozen=True, slots=True)
class Frame:
    """One server-sent event. Without a number it is live only."""

    number: int | None
    type: str
    text: bytes

    @classmethod
    def of(cls, shown: dict[str, Any]) -> Frame:
        """The frame of an event as JSON."""
        number, kind = shown.get("sequence_number"), shown["type"]
        name = b"" if number is None else b"id: %d\n" % number
        text = b"%sevent: %s\ndata: %s\n\n" % (name, kind.encode(), orjson.dumps(shown))
        return cls(number, kind, text)

    @property
    def is_last(self) -> bool:
        """Whether the run's log ends with it."""
        return self.type in ENDS

    @property
    def is_whole(self) -> bool:
        """Whether it says all that the table would."""
        return self.type not in _READ_WHOLE


def packed(shown: Iterable[dict[str, Any]]) -> bytes:
    """Events as they travel through Redis."""
    return orjson.dumps(list(shown))


def unpacked(message: bytes) -> Sequence[Frame]:
    """The frames of what travelled. Raises ValueError for what is not ours."""
    try:
        return [Frame.of(shown) for shown in orjson.loads(message)]
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError("no list of events") from error
