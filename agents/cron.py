"""When a cron expression comes true, by the clocks of a time zone.

At a change to daylight saving time a run whose hour is skipped begins right after it; at the
change back one that has a fixed hour begins once.
"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from tenants.errors import InvalidInput


def next_tick(cron: str, timezone: str, *, after: datetime) -> datetime:
    """The first moment after ``after``. Raises InvalidInput (cron, timezone)."""
    if len(cron.split()) != 5:
        raise InvalidInput("cron has five fields: minute, hour, day, month, weekday.", param="cron")
    try:
        ticks = CronSim(cron, after.astimezone(_zone(timezone)))
        return next(ticks).astimezone(UTC)
    except CronSimError as error:
        problem = f"This is no cron expression: {error}."
    except StopIteration:
        problem = "This cron expression never comes true."
    raise InvalidInput(problem, param="cron")


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        problem = "This is no time zone: use a name such as Asia/Tashkent."
    raise InvalidInput(problem, param="timezone")
