"""How long a run waits for models that cool down, one time after the other."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings

from agents.models import Run, Step


def is_patient(run: Run, steps: Iterable[Step], until: datetime) -> bool:
    """Whether to wait until then: not where nothing has ended for ``RUN_MODEL_PATIENCE`` seconds.

    A provider that is down for good would otherwise keep its runs for ever.
    """
    ended = [step.ended_at for step in steps if step.ended_at is not None]
    since = max(ended, default=run.started_at or run.created_at)
    return until - since <= timedelta(seconds=settings.RUN_MODEL_PATIENCE)
