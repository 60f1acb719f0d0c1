"""One attempt: one candidate asked once. Every way it can end is journaled, exactly once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from uuid_utils import uuid7

from llmbroker.exchange import Exchange, Source
from llmbroker.latency import Latency
from llmbroker.models import Call, CallStatus, Completion
from llmbroker.ports import IntentStore, KeyWatch, Secrets, Store
from llmbroker.routing.alarm import Alarm
from llmbroker.routing.call import Ask
from llmbroker.routing.candidates import Candidate
from llmbroker.routing.corrections import Corrections
from llmbroker.routing.health import Health
from llmbroker.routing.slots import Slots
from llmbroker.routing.verdict import VERDICTS, Cools
from llmbroker.transport import Transport
from llmbroker.wire.completion import one_tool_call
from llmbroker.wire.failure import ExchangeError, Failure, FailureKind
from llmbroker.wire.request import Request, build_request


@dataclass(slots=True)
class Engine:
    """What every attempt needs: the parts of one broker."""

    transport: Transport
    store: Store
    health: Health
    slots: Slots
    secrets: Secrets
    clock: Callable[[], float] = time.time
    alarm: Alarm = field(default_factory=Alarm)
    latency: Latency = field(default_factory=Latency)
    first_token: Latency = field(default_factory=Latency)
    corrections: Corrections = field(default_factory=Corrections)
    intents: IntentStore | None = field(init=False)
    watch: KeyWatch | None = field(init=False)
    _running: set[asyncio.Task[Any]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.intents = self.store if isinstance(self.store, IntentStore) else None
        self.watch = self.secrets if isinstance(self.secrets, KeyWatch) else None

    def latency_of(self, ask: Ask) -> Latency:
        """How long models take until such a call shows something: whole, or its first token."""
        return self.first_token if ask.stream else self.latency

    def track(self, task: asyncio.Task[Any]) -> None:
        """Keep ``task`` alive, and let ``drain`` wait for it."""
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def settle(self, work: Coroutine[Any, Any, None]) -> None:
        """Finish ``work`` even if the caller is cancelled meanwhile."""
        task = asyncio.ensure_future(work)
        self.track(task)
        await asyncio.shield(task)

    async def drain(self) -> None:
        """Wait for everything that still has to be journaled."""
        while self._running:
            await asyncio.gather(*self._running, return_exceptions=True)


class Attempt:
    """Holds a slot from its making until ``succeed``, ``fail`` or ``abandon`` has been called."""

    def __init__(
        self, engine: Engine, ask: Ask, candidate: Candidate, known: frozenset[str]
    ) -> None:
        """``known`` are the candidate's ids that have a cooldown: a success clears them."""
        self.candidate = candidate
        self.call_id = str(uuid7())
        self.superseded = False
        self._engine = engine
        self._exchange = Exchange(engine.transport, candidate.config, candidate.key)
        self._ask = ask
        self._known = known
        self._started = engine.clock()
        self._first_token: float | None = None
        self._settled = False

    async def answer(self, timeout: float | None) -> Completion:
        """Ask and wait for the whole answer. Raises ExchangeError."""
        await self._begin()
        completion = await self._exchange.whole(
            self._request(stream=False), timeout=timeout, max_tokens=self._max_tokens
        )
        await self.succeed(completion)
        return one_tool_call(completion) if self.one_tool_only else completion

    @property
    def one_tool_only(self) -> bool:
        """Whether the caller wants one tool call at a time, whatever the model makes of it."""
        return (self._ask.params or {}).get("parallel_tool_calls") is False

    async def open(self, connection: AsyncExitStack, timeout: float | None) -> Source:
        """Ask and wait for the first content; the rest is read from the source."""
        await self._begin()
        source = await self._exchange.open(
            self._request(stream=True), connection, timeout=timeout, max_tokens=self._max_tokens
        )
        self._first_token = self._engine.clock()
        return source

    async def succeed(self, completion: Completion) -> None:
        """The answer is whole: journal it and end the candidate's bad streaks."""
        row = self._row(
            CallStatus.OK,
            http_status=200,
            usage=completion.usage,
            model_answered=completion.model_answered,
        )
        self._engine.latency_of(self._ask).observe(self.candidate.name, self._seconds)
        if self._known:
            await self._engine.health.clear(sorted(self._known))
            self._engine.alarm.cleared(self._known, self.candidate.name)
        await self._settle(row)

    async def fail(self, failure: Failure, *, budget_spent: bool = False) -> None:
        """Judge ``failure``: cool what it says, journal it.

        With ``budget_spent`` the caller's own time ran out, which proves nothing against the
        model: nothing is cooled, but it counts as slow.
        """
        verdict = VERDICTS[failure.kind]
        cooled = None
        if budget_spent:
            self._engine.latency_of(self._ask).observe_at_least(
                self.candidate.name, max(self._seconds, self._ask.wait or 0.0)
            )
        else:
            self._engine.corrections.learn(self.candidate.config, failure)
            cooled = await self._cool(failure)
            if failure.kind is FailureKind.KEY_REFUSED:
                await self._report_key(failure)
        detail = "the caller's wait ran out" if budget_spent else failure.detail
        row = self._row(
            verdict.status,
            http_status=failure.status,
            error_class=failure.kind.value,
            error_detail=detail or None,
            cooldown_until=cooled,
        )
        await self._settle(row)

    async def abandon(self) -> None:
        """The attempt was cancelled: superseded by another one, or its caller went away."""
        status = CallStatus.SUPERSEDED if self.superseded else CallStatus.INTERRUPTED
        await self._engine.settle(self._settle(self._row(status)))

    async def _begin(self) -> None:
        """Make the intent durable, before anything is sent."""
        if self._engine.intents is not None:
            await self._engine.intents.begin(self._row(CallStatus.STARTED))

    def _request(self, *, stream: bool) -> Request:
        ask, config = self._ask, self.candidate.config
        corrected = self._engine.corrections.of(config)
        try:
            return build_request(
                config,
                self.candidate.key.value,
                ask.messages,
                tools=ask.tools,
                params=ask.params,
                stream=stream,
                dropped=corrected.dropped,
                renamed=corrected.renamed,
            )
        except ValueError:  # the rest of the request was checked before
            detail = "the stored key holds characters that no key has"
        raise ExchangeError(Failure(FailureKind.KEY_REFUSED, detail=detail))

    @property
    def _max_tokens(self) -> int | None:
        """The caller's cap of the answer, by which a cut answer is told from a broken one."""
        params = self._ask.params or {}
        cap = params.get("max_completion_tokens", params.get("max_tokens"))
        return cap if isinstance(cap, int) else None

    async def _cool(self, failure: Failure) -> datetime | None:
        verdict = VERDICTS[failure.kind]
        if verdict.cools is Cools.NOTHING:
            return None
        identity = self.candidate.ids[verdict.cools]
        seconds = await self._engine.health.cool(
            identity, seconds=verdict.seconds, asked=failure.retry_after
        )
        until = datetime.fromtimestamp(seconds, UTC)
        self._engine.alarm.cooled(identity, self.candidate.name, failure, verdict.cools, until)
        return until

    async def _report_key(self, failure: Failure) -> None:
        watch = self._engine.watch
        if watch is not None and self.candidate.key.id:
            await watch.key_refused(self.candidate.key, detail=failure.detail)

    @property
    def _seconds(self) -> float:
        return (self._first_token or self._engine.clock()) - self._started

    def release(self) -> bool:
        """Give the slot back; whether it was still held."""
        if self._settled:
            return False
        self._settled = True
        self._engine.slots.release(self.candidate.config)
        return True

    async def _settle(self, row: Call) -> None:
        if self.release():
            await self._engine.store.record(row)

    def _row(self, status: CallStatus, **outcome: Any) -> Call:
        candidate, ask, started = self.candidate, self._ask, self._started
        ended = status is not CallStatus.STARTED
        first = self._first_token
        return Call(
            id=self.call_id,
            llm_name=candidate.name,
            operation=ask.operation,
            trace_id=ask.trace_id,
            status=status,
            ts=datetime.fromtimestamp(started, UTC),
            latency_ms=round((self._engine.clock() - started) * 1000) if ended else None,
            scope=ask.scope,
            base_url=candidate.config.base_url,
            model=candidate.config.model,
            key_id=candidate.key.id or None,
            key_source=candidate.key.source if candidate.key.id else None,
            first_token_ms=None if first is None else round((first - started) * 1000),
            streamed=ask.stream,
            **outcome,
        )
