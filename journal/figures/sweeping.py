"""Attempts without an outcome whose process is gone: closed as unknown, so that none stays open."""

from datetime import datetime

from journal.figures.strides import follow, progress, settled_before
from journal.models import Call
from journal.moments import first_id_at
from llmbroker.models import CallStatus

NAME = "sweep"
LOST = {
    "status": CallStatus.UNKNOWN.value,
    "error_class": "lost",
    "error_detail": "no outcome was written: the process was killed during the call",
}


def sweep(*, now: datetime, strides: int = 24 * 400) -> datetime | None:
    """Close what was lost long enough before ``now``; up to when everything is closed."""
    follow(NAME, _close, until=settled_before(now), strides=strides)
    return progress(NAME)


def _close(since: datetime, until: datetime) -> None:
    calls = Call.objects.filter(id__gte=first_id_at(since), id__lt=first_id_at(until))
    calls.filter(status=CallStatus.STARTED.value).update(**LOST)
