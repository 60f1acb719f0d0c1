"""What is told of one run, for blocking code. Where Redis is away there is only silence."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import orjson
from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

from agents.streams.frames import channel_of

log = logging.getLogger(__name__)


class Hearing:
    """Hears of a run from ``with`` on."""

    def __init__(self, run_id: UUID) -> None:
        self._channel = channel_of(run_id)
        self._redis = Redis.from_url(settings.REDIS_URL)
        self._pubsub = self._redis.pubsub(  # type: ignore[no-untyped-call]
            ignore_subscribe_messages=True
        )

    def wait(self, seconds: float) -> Sequence[dict[str, Any]]:
        """The events of the next message, as JSON; none where there is silence for ``seconds``."""
        began = time.monotonic()
        try:
            message = self._pubsub.get_message(timeout=seconds)
        except RedisError as error:
            log.debug("nothing is heard: %s", type(error).__name__)
            time.sleep(max(0.0, began + seconds - time.monotonic()))
            return ()
        return () if message is None else orjson.loads(message["data"])

    def __enter__(self) -> Self:
        try:
            self._pubsub.subscribe(self._channel)
        except RedisError as error:
            log.debug("nothing is heard: %s", type(error).__name__)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pubsub.close()
        self._redis.close()
