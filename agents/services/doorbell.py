"""The queue as a doorbell: it carries nothing, and losing or repeating it changes nothing.

What there is to do is told by the runs' rows alone.
"""

from __future__ import annotations

import logging

from celery import current_app
from kombu.exceptions import OperationalError

ADVANCE_RUNS = "agents.advance_runs"

log = logging.getLogger(__name__)


def ring(task: str = ADVANCE_RUNS) -> None:
    """Tell a worker that there are runs, or what else ``task`` looks for.

    What does not arrive, workers and the beat find by themselves.
    """
    try:
        current_app.send_task(task, retry=False, ignore_result=True)
    except OperationalError as error:
        log.warning("all is stored, but the queue did not take its ring (%s): %s", task, error)
