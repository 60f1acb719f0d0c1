"""Work that follows the journal in time: stretch by stretch, each in a transaction of its own."""

from collections.abc import Callable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from journal.models import Call, Progress
from journal.moments import moment_of

HOUR, DAY = timedelta(hours=1), timedelta(days=1)

Work = Callable[[datetime, datetime], None]


def settled_before(now: datetime) -> datetime:
    """Every call that began before this has ended, or its process was lost."""
    return now - timedelta(seconds=settings.JOURNAL_LOST_AFTER_SECONDS)


def follow(name: str, work: Work, *, until: datetime, strides: int) -> bool:
    """Do ``work`` from where it was left to ``until``, ``strides`` stretches at most.

    Whether it got there. Several processes may try at once: one does it, the others leave.
    """
    return any(_stride(name, work, until) for _ in range(strides))


def progress(name: str) -> datetime | None:
    """How far the work has come; None if it has not begun."""
    return Progress.objects.filter(name=name).values_list("until", flat=True).first()


@transaction.atomic
def _stride(name: str, work: Work, until: datetime) -> bool:
    """One stretch; whether there is nothing left to do (for us)."""
    Progress.objects.bulk_create(
        [Progress(name=name, until=_beginning(until))], ignore_conflicts=True
    )
    done = Progress.objects.select_for_update(skip_locked=True).filter(name=name).first()
    if done is None or done.until >= until:
        return True
    stride = DAY if until - done.until > DAY else HOUR
    start, done.until = done.until, min(done.until + stride, until)
    work(start, done.until)
    done.save(update_fields=["until"])
    return done.until >= until


def _beginning(otherwise: datetime) -> datetime:
    first = Call.objects.order_by("id").values_list("id", flat=True).first()
    return otherwise if first is None else min(moment_of(first), otherwise)
