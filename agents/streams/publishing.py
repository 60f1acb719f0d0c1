"""Telling whoever listens, through Redis. What does not arrive is read from the table later."""

from __future__ import annotations

import functools
import logging
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from agents.models import Event
from agents.streams.frames import DELTA, channel_of, event_json, packed

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
        if time.monotonic() < self._silent_until:
            return
        try:
            with self._redis.pipeline(transaction=False) as pipeline:
                for run_id, message in messages.items():
                    pipeline.publish(channel_of(run_id), message)
                pipeline.execute()
        except RedisError as error:
            self._silent_until = time.monotonic() + ASK_AGAIN_AFTER
            log.warning("events are not told live: %s", type(error).__name__)


def publish(events: Sequence[Event]) -> None:
    """Tell of events that are stored, in the order of their numbers."""
    shown = defaultdict(list)
    for event in events:
        shown[event.run_id].append(event_json(event))
    _publisher().send({run_id: packed(each) for run_id, each in shown.items()})


def publish_delta(run_id: UUID, *, step: int, text: str) -> None:
    """Tell what a model is saying, before its message is complete and stored."""
    shown = {"object": "run.event", "type": DELTA, "data": {"step": step, "delta": text}}
    _publisher().send({run_id: packed([shown])})


@functools.cache
def _publisher() -> Publisher:
    return Publisher(settings.REDIS_URL)
