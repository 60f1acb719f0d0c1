"""The journal's tables."""

from journal.models.calls import (
    DETAIL_LIMIT,
    INSTALLATION,
    KEY_SOURCES,
    NAME_LIMIT,
    STATUSES,
    URL_LIMIT,
    Call,
    Rating,
)
from journal.models.figures import EVERYBODY, DailyFigures, Progress, StaleDay
from journal.models.retention import Payload, RetentionPolicy

__all__ = [
    "DETAIL_LIMIT",
    "EVERYBODY",
    "INSTALLATION",
    "KEY_SOURCES",
    "NAME_LIMIT",
    "STATUSES",
    "URL_LIMIT",
    "Call",
    "DailyFigures",
    "Payload",
    "Progress",
    "Rating",
    "RetentionPolicy",
    "StaleDay",
]
