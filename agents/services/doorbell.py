"""The queue as a doorbell: it carries a run's id, and losing or repeating it changes nothing."""

from __future__ import annotations

import logging
from uuid import UUID

from celery import current_app
from kombu.exceptions import OperationalError

ADVANCE_RUN = "agents.advance_run"

log = logging.getLogger(__name__)


def ring(run_id: UUID) -> None:
    """Tell a worker that a run is worth a look. What does not arrive, the reaper rings again."""
    try:
        current_app.send_task(ADVANCE_RUN, args=[str(run_id)], retry=False, ignore_result=True)
    except OperationalError as error:
        log.warning("run %s is stored, but the queue did not take it yet: %s", run_id, error)
