"""What streams read of the database, each in one short visit to a database thread."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Max
from django.utils import timezone

from agents.models import Event, Run
from agents.selectors import events_of
from agents.streams.frames import Frame, event_json
from tenants.caller import Caller
from tenants.context import all_tenants, scope_active
from tenants.roles import RUNS_READ
from tenants.standing import still_allowed

PAGE = 200


@dataclass(frozen=True, slots=True)
class Page:
    """Stored events in order, and whether more are stored or can come at all."""

    frames: list[Frame]
    has_more: bool = False
    is_end: bool = False


def page_after(caller: Caller, run_id: UUID, number: int) -> Page:
    """What follows event ``number`` in the log of a run of the caller's scope."""
    with scope_active(caller.own_reach):
        # The state first: a run that is over had all its events then.
        status = Run.objects.filter(id=run_id).values_list("status", flat=True).first()
        if status is None:
            return Page([], is_end=True)
        rows = list(events_of(run_id).filter(sequence_number__gt=number)[: PAGE + 1])
    frames = [Frame.of(event_json(row)) for row in rows[:PAGE]]
    has_more = len(rows) > PAGE
    return Page(frames, has_more, is_end=status in Run.TERMINAL and not has_more)


def allowed(callers: Collection[Caller]) -> frozenset[Caller]:
    """Those of the listeners' callers that may still read runs."""
    with all_tenants("event streams: who may still listen", routine=True):
        return still_allowed(callers, RUNS_READ, now=timezone.now())


def latest(run_ids: Collection[UUID]) -> dict[UUID, int]:
    """The newest event of each run that there is; numbers only, whoever's they are."""
    with all_tenants("event streams: which runs have news", routine=True):
        numbers = Event.objects.filter(run_id__in=run_ids).values_list("run_id")
        return dict(numbers.annotate(newest=Max("sequence_number")))
