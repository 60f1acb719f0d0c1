"""Telling whoever listens, through Redis. What does not arrive is read from the table later."""

from __future__ import annotations

import functools
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from agents.models import Event
from agents.streams.frames import channel_of, event_json, packed

TIMEOUT = 0.25
"""Seconds that a run may lose to a Redis that does not answer, and then not again for a while."""

ASK_AGAIN_AFTER = 2.0

log = logging.getLogger(__name__)


class Publisher:
    """A connection or two to Redis, and a memory of when it last failed."""

    def __init__(self, url: str) -> None:
        limits = {"socket_timeout": TIMEOUT, "socket_connect_timeout": TIMEOUT}
        self._redis = Redis.from_url(url, retry=Retry(NoBackoff(), 0), **limits)
        self._silent_until = 0.0

    def send(self, messages: Mapping[UUID, bytes]) -> None:
        """Publish each run's message, all in one round trip; once, or not at all."""

        def publish() -> None:
            with self._redis.pipeline(transaction=False) as pipeline:
                for run_id, message in messages.items():
                    pipeline.publish(channel_of(run_id), message)
                pipeline.execute()

        self._tried(publish)

    def listened(self) -> frozenset[bytes]:
        """The channels of runs that somebody listens to; none while Redis does not say."""
        return frozenset(self._tried(lambda: self._redis.pubsub_channels(channel_of("*"))) or ())

    def _tried(self, work: Callable[[], Any]) -> Any:
        """The value of ``work``; None where Redis fails, or has just failed."""
        if time.monotonic() < self._silent_until:
            return None
        try:
            return work()
        except (RedisError, OSError) as error:
            self._silent_until = time.monotonic() + ASK_AGAIN_AFTER
            log.warning("events are not told live: %s", type(error).__name__)
            return None


def publish(events: Sequence[Event]) -> None:
    """Tell of events that are stored, in the order of their numbers."""
    shown = defaultdict(list)
    for event in events:
        shown[event.run_id].append(event_json(event))
    publisher().send({run_id: packed(each) for run_id, each in shown.items()})


@functools.cache
def publisher() -> Publisher:
    """The one of this process."""
    return Publisher(settings.REDIS_URL)
