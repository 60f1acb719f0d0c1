"""One attempt: one candidate asked once. Every way it can end is journaled, exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any

from uuid_utils import uuid7

from llmbroker.attribution import attribution
from llmbroker.exchange import Exchange, Source
from llmbroker.models import Call, CallStatus, Completion
from llmbroker.outgoing import Outgoing
from llmbroker.routing.call import Ask
from llmbroker.routing.candidates import Candidate
from llmbroker.routing.engine import Engine
from llmbroker.routing.standing import Standing
from llmbroker.routing.toll import Toll
from llmbroker.routing.verdict import VERDICTS
from llmbroker.wire.completion import one_tool_call
from llmbroker.wire.failure import ExchangeError, Failure, FailureKind
from llmbroker.wire.params import answer_cap, asked
from llmbroker.wire.request import Request, UnsendableKeyError, build_request


class Attempt:
    """Holds a slot from its making until it has ended: ``succeed``, ``fail`` or ``abandon``.

    The first of these that is called counts, and is finished even if its caller is cancelled.
    """

    def __init__(
        self,
        engine: Engine,
        ask: Ask,
        candidate: Candidate,
        known: frozenset[str],
        *,
        claims: frozenset[str] = frozenset(),
        is_probe: bool = False,
    ) -> None:
        """``known`` are the candidate's ids that a success clears, ``claims`` those that nobody
        else tries meanwhile."""
        self.candidate = candidate
        self.is_probe = is_probe
        self.call_id = str(uuid7())
        self.superseded = False
        self._engine = engine
        self._exchange = Exchange(engine.transport, candidate.config, candidate.key)
        self._ask = ask
        self._part = attribution()
        self._standing = Standing(engine, candidate, known, claims)
        self._started = engine.clock()
        self._first_token: float | None = None
        self._ended = False
        self._sent = False
        self._toll = Toll(engine.gate, ask.params)

    async def answer(self, timeout: float | None) -> Completion:
        """Ask and wait for the whole answer. Raises ExchangeError.

        Whether it is used is for the caller to say, with ``succeed`` or ``abandon``.
        """
        await self._toll.enter(self._outgoing)
        request = self._request(stream=False)
        await self._begin()
        completion = await self._exchange.whole(
            request, timeout=timeout, max_tokens=answer_cap(self._asked)
        )
        return one_tool_call(completion) if self.one_tool_only else completion

    @property
    def one_tool_only(self) -> bool:
        """Whether the caller wants one tool call at a time, whatever the model makes of it."""
        return self._asked.get("parallel_tool_calls") is False

    async def open(
        self, connection: AsyncExitStack, timeout: float | None, *, patient: bool = False
    ) -> Source:
        """Ask and wait for the first content; the rest is read from the source."""
        await self._toll.enter(self._outgoing)
        request = self._request(stream=True)
        await self._begin()
        source = await self._exchange.open(
            request,
            connection,
            timeout=timeout,
            max_tokens=answer_cap(self._asked),
            patient=patient,
        )
        self._first_token = self._engine.clock()
        await self._standing.answered()
        return source

    def note_overdue(self) -> None:
        """It takes so long that another one is started beside it."""
        self._standing.overdue()

    async def succeed(self, completion: Completion) -> None:
        """The answer is whole: journal it and end the candidate's bad streaks."""
        await self._end(self._succeed(completion))

    async def fail(self, failure: Failure, *, budget_spent: bool = False) -> None:
        """Judge ``failure``: cool what it says, journal it.

        With ``budget_spent`` the caller's own time ran out, which proves nothing against the
        model: nothing is cooled, but it counts as slow.
        """
        await self._end(self._fail(failure, budget_spent=budget_spent))

    async def abandon(self, completion: Completion | None = None) -> None:
        """Nobody wants it any more: another one was quicker, or its caller went away.

        ``completion`` is what it answered all the same: it will be billed.
        """
        await self._end(self._abandon(completion))

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what belongs to this attempt when nobody is there to wait for it."""
        self._engine.track(asyncio.ensure_future(work))

    async def crash(self, error: BaseException) -> None:
        """Something of ours failed on the way, not the provider."""
        row = self._row(CallStatus.ERROR, error_class=type(error).__name__)
        await self._end(self._record(row, self._toll.abandoned(sent=self._sent)))

    async def _end(self, work: Coroutine[Any, Any, None]) -> None:
        if self._ended:
            work.close()
            return
        self._ended = True
        await self._engine.settle(work)

    async def _succeed(self, completion: Completion) -> None:
        self._engine.latency_of(self._ask).observe(self.candidate.name, self._seconds)
        row = self._answered(CallStatus.OK, completion)
        await self._record(row, self._toll.answered(completion))
        await self._standing.answered()
        if self._engine.payloads is not None:
            await self._engine.payloads.record_payload(row, self._ask.messages, completion.message)

    async def _fail(self, failure: Failure, *, budget_spent: bool) -> None:
        cooled = None
        try:
            if budget_spent:
                self._engine.latency_of(self._ask).observe_at_least(
                    self.candidate.name, max(self._seconds, self._ask.wait or 0.0)
                )
                await self._standing.proved_nothing()
            else:
                self._engine.corrections.learn(self.candidate.config, failure)
                cooled = await self._standing.failed(failure)
        finally:
            detail = "the caller's wait ran out" if budget_spent else failure.detail
            row = self._row(
                VERDICTS[failure.kind].status,
                http_status=failure.status,
                error_class=failure.kind.value,
                error_detail=detail or None,
                cooldown_until=cooled,
            )
            await self._record(row, self._toll.failed(failure.kind))

    async def _abandon(self, completion: Completion | None) -> None:
        status = CallStatus.SUPERSEDED if self.superseded else CallStatus.INTERRUPTED
        if completion is None:
            await self._record(self._row(status), self._toll.abandoned(sent=self._sent))
            await self._standing.proved_nothing()
        else:
            await self._record(self._answered(status, completion), self._toll.answered(completion))
            await self._standing.answered()

    async def _record(self, row: Call, leave_toll: Coroutine[Any, Any, None]) -> None:
        """Give the slot back, settle with the gate, and write the outcome."""
        self._engine.slots.release(self.candidate.config)
        try:
            await leave_toll
        finally:
            await self._engine.store.record(row)

    async def _begin(self) -> None:
        """Make the intent durable, before anything is sent."""
        if self._engine.intents is not None:
            await self._engine.intents.begin(self._row(CallStatus.STARTED))
        self._sent = True

    def _outgoing(self) -> Outgoing:
        ask = self._ask
        return Outgoing(
            self.call_id,
            ask.scope,
            self.candidate.config,
            ask.messages,
            ask.tools,
            ask.params,
            self.candidate.key.id,
        )

    def _request(self, *, stream: bool) -> Request:
        ask, config = self._ask, self.candidate.config
        corrected = self._engine.corrections.of(config)
        try:
            return build_request(
                config,
                self.candidate.key.value,
                ask.messages,
                tools=ask.tools,
                params=self._toll.params,
                stream=stream,
                dropped=corrected.dropped,
                renamed=corrected.renamed,
            )
        except UnsendableKeyError:
            detail = "the stored key holds characters that no key has"
        raise ExchangeError(Failure(FailureKind.KEY_REFUSED, detail=detail))

    @property
    def _asked(self) -> dict[str, object]:
        """The parameters that the request has, the model's own among them."""
        return asked(
            self._toll.params, self.candidate.config.tool_params if self._ask.tools else {}
        )

    @property
    def _seconds(self) -> float:
        return (self._first_token or self._engine.clock()) - self._started

    def _answered(self, status: CallStatus, completion: Completion) -> Call:
        return self._row(
            status,
            http_status=200,
            usage=completion.usage,
            model_answered=completion.model_answered,
            provider_id=completion.provider_id,
            **self._cost(completion),
        )

    def cost_micros(self, completion: Completion) -> int | None:
        """What the answer cost, in millionths of a US dollar."""
        cost: int | None = self._cost(completion).get("cost_micros")
        return cost

    def _cost(self, completion: Completion) -> dict[str, Any]:
        if self._engine.pricing is None or completion.usage is None:
            return {}
        price = self._engine.pricing(
            self.candidate.config, completion.usage, completion.model_answered
        )
        return {} if price is None else {"cost_micros": price.micros, "price": price.source}

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
            run=self._part.run,
            step=self._part.step,
            **outcome,
        )
