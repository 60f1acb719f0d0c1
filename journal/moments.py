"""Moments and the ids made at them: a range of time is a range of ids."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MILLISECOND = 2**48 - 1

LAST_DAY = datetime(9999, 1, 1, tzinfo=UTC)

CLOCK_MARGIN = timedelta(hours=1)
"""How far the clock that made an id may lie from the ``ts`` beside it."""


def first_id_at(moment: datetime) -> UUID:
    """No UUIDv7 made at ``moment`` or later is smaller than this."""
    milliseconds = (moment - EPOCH) // timedelta(milliseconds=1)
    return UUID(int=min(max(milliseconds, 0), LAST_MILLISECOND) << 80)


def earliest_id(since: datetime) -> UUID:
    """No call that started at ``since`` or later has a smaller id, whatever its clock said."""
    return first_id_at(max(since, EPOCH + CLOCK_MARGIN) - CLOCK_MARGIN)


def latest_id(until: datetime) -> UUID:
    """Every call that started before ``until`` has a smaller id."""
    return first_id_at(min(until, LAST_DAY) + CLOCK_MARGIN)


def moment_of(identity: UUID) -> datetime:
    """When a UUIDv7 was made."""
    return EPOCH + timedelta(milliseconds=identity.int >> 80)
