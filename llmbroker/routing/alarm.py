"""Says in the log when something falls out of use and when it is back: once per change."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime

from llmbroker.routing.verdict import Cools
from llmbroker.wire.failure import Failure

logger = logging.getLogger("llmbroker.pool")


class Alarm:
    """Remembers what it has said."""

    def __init__(self) -> None:
        self._out: set[str] = set()

    def cooled(
        self, identity: str, llm_name: str, failure: Failure, cools: Cools, until: datetime
    ) -> None:
        """Something cools after a failure of ``llm_name``."""
        if identity in self._out:
            return
        self._out.add(identity)
        logger.warning(
            "%s: %s; %s is out of use until %s",
            llm_name,
            failure.kind.value,
            cools.value,
            until.isoformat(timespec="seconds"),
        )

    def cleared(self, ids: Iterable[str], llm_name: str) -> None:
        """An answer of ``llm_name`` showed that ``ids`` are in order again."""
        back = self._out.intersection(ids)
        if back:
            self._out -= back
            logger.warning("%s: back in use", llm_name)
