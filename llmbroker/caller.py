"""Whoever calls models: the broker itself, or one scope of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from llmbroker.catalog import aliases
from llmbroker.direct import AsyncDirectClient, Resolved
from llmbroker.errors import MissingKeyError, UnknownCallError, UnknownModelError
from llmbroker.learning import Learner
from llmbroker.models import (
    ApiKey,
    Call,
    CallStatus,
    LLMConfig,
    Message,
    Rated,
    ToolSchema,
    check_params,
    check_score,
)
from llmbroker.reply import AsyncReply
from llmbroker.routing.attempt import Attempt
from llmbroker.routing.call import PREFERENCES, Ask, Prefer
from llmbroker.routing.engine import Engine
from llmbroker.routing.pool import Pool
from llmbroker.routing.router import Router
from llmbroker.routing.streaming import LiveStream
from llmbroker.snapshot import ModelStats, Snapshot, snapshot_of, stats_of
from llmbroker.stream import AsyncStream
from llmbroker.wire.deltas import OnDelta
from llmbroker.wire.request import check_messages, check_tool_choice

STATS_LIMIT = 10_000
"""How many of the newest attempts ``stats`` reads."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the callers of one broker share."""

    pool: Pool
    router: Router
    engine: Engine
    learner: Learner
    direct: tuple[LLMConfig, ...]


class AsyncCaller:
    """Calls models in the name of ``scope``: pays with its keys, stamps its journal rows."""

    def __init__(self, parts: Parts, scope: str | None) -> None:
        self._parts = parts
        self._scope = scope

    @property
    def scope(self) -> str | None:
        """In whose name; None is the installation."""
        return self._scope

    async def ask(self, prompt: str, **kwargs: Any) -> AsyncReply:
        """``chat`` with one user message."""
        return await self.chat([{"role": "user", "content": prompt}], **kwargs)

    async def chat(
        self,
        messages: list[Message],
        *,
        tools: list[ToolSchema] | None = None,
        operation: str | None = None,
        trace_id: str | None = None,
        wait: float | None = None,
        fastest_of: int | None = None,
        response_format: Mapping[str, Any] | None = None,
        params: Mapping[str, object] | None = None,
        prefer: Prefer = "quality",
        on_delta: OnDelta | None = None,
    ) -> AsyncReply:
        """One whole reply by the best model that can give it now.

        ``wait`` is in seconds: None waits while something can come back, 0 never queues, a
        number bounds queueing and answer together. ``fastest_of`` models race.
        ``operation`` names the task, so that ratings of it teach the order for it; one
        ``trace_id`` ties calls together in the journal. ``params`` go into the request.
        ``prefer`` is what decides the order: expected quality, latency, or cost.

        ``on_delta`` is told each Delta of the reply as it arrives, on the event loop's thread.
        Unlike ``stream``, an answer that then breaks off is asked for again, of any model:
        ``on_delta(None)`` says that what was told so far is void. What it raises ends the call.

        Raises LLMRequestError; ValueError for arguments that make no sense.
        """
        ask = self._ask(
            messages,
            tools=tools,
            operation=operation,
            trace_id=trace_id,
            wait=wait,
            fastest_of=fastest_of,
            params=_with_format(params, response_format),
            prefer=prefer,
            stream=on_delta is not None,
        )
        self._parts.learner.look(self._scope)
        router = self._parts.router
        work = router.answer(ask) if on_delta is None else router.told(ask, on_delta)
        attempt, completion = await work
        return AsyncReply(
            text=completion.text,
            tool_calls=completion.tool_calls,
            usage=completion.usage,
            llm_name=attempt.candidate.name,
            call_id=attempt.call_id,
            operation=operation,
            finish_reason=completion.finish_reason,
            reasoning=completion.reasoning,
            model=completion.model_answered,
            key_source=attempt.candidate.key.source if attempt.candidate.key.id else None,
            message=completion.message,
            cost_micros=attempt.cost_micros(completion),
            _rate=self._rate,
        )

    def stream(
        self,
        prompt: str | None = None,
        *,
        messages: list[Message] | None = None,
        tools: list[ToolSchema] | None = None,
        operation: str | None = None,
        trace_id: str | None = None,
        wait: float | None = None,
        fastest_of: int | None = None,
        response_format: Mapping[str, Any] | None = None,
        params: Mapping[str, object] | None = None,
        prefer: Prefer = "quality",
    ) -> AsyncStream:
        """A reply as it arrives: exactly one of ``prompt`` and ``messages``.

        Fails over until the first content; what breaks off after it raises
        StreamInterruptedError, and never another model's text. Raises ValueError unless given one.
        """
        if (prompt is None) == (messages is None):
            raise ValueError("pass exactly one of prompt and messages")
        ask = self._ask(
            messages if messages is not None else [{"role": "user", "content": prompt}],
            tools=tools,
            operation=operation,
            trace_id=trace_id,
            wait=wait,
            fastest_of=fastest_of,
            params=_with_format(params, response_format),
            prefer=prefer,
            stream=True,
        )
        return AsyncStream(lambda: self._open(ask), self._rate, operation)

    def direct(
        self, alias: str | None = None, *, name: str | None = None, key: ApiKey | None = None
    ) -> AsyncDirectClient:
        """A client for exactly one model: no pool, no failover, no journal.

        It pays with ``key``, else with the scope's first. Its calls raise UnknownModelError or
        MissingKeyError; ``await`` it to know at once. Raises ValueError unless given either
        ``alias`` or ``name``.
        """
        if (alias is None) == (name is None):
            raise ValueError("pass exactly one of alias and name")

        async def resolve() -> Resolved:
            config = await self._named(alias, name)
            if key is not None:
                return config, key
            keys = await self._parts.pool.keys(config.api_key_ref, scope=self._scope)
            if not keys:
                raise MissingKeyError(f"{config.name}: no key is stored as {config.api_key_ref}")
            return config, keys[0]

        engine = self._parts.engine
        return AsyncDirectClient(resolve, engine.transport, scope=self._scope, gate=engine.gate)

    async def record_quality(
        self, score: float, *, call_id: str | None = None, trace_id: str | None = None
    ) -> None:
        """Rate a call, 0.0 … 1.0, by its id or as the last successful one of a trace.

        Raises UnknownCallError when this scope has no such answered call, ValueError for a score
        out of range or unless given either ``call_id`` or ``trace_id``.
        """
        if (call_id is None) == (trace_id is None):
            raise ValueError("pass exactly one of call_id and trace_id")
        check_score(score)
        store = self._parts.engine.store
        found = await store.calls(limit=100, scope=self._scope, call_id=call_id, trace_id=trace_id)
        call = next((each for each in found if each.status is CallStatus.OK), None)
        if call is None:
            raise UnknownCallError(f"no answered call has the id or trace {call_id or trace_id}")
        await store.record_quality(call.id, score, scope=call.scope)
        self._parts.learner.observe(call.scope, Rated(call.operation, call.llm_name, score))

    async def calls(
        self,
        limit: int = 100,
        *,
        since: datetime | None = None,
        operation: str | None = None,
        trace_id: str | None = None,
        call_id: str | None = None,
    ) -> list[Call]:
        """This scope's newest attempts, newest first; the installation sees all."""
        return await self._parts.engine.store.calls(
            limit=limit,
            scope=self._scope,
            since=since,
            operation=operation,
            trace_id=trace_id,
            call_id=call_id,
        )

    async def stats(
        self, *, since: datetime | None = None, operation: str | None = None
    ) -> dict[str, ModelStats]:
        """Statistics per model over this scope's newest attempts."""
        return stats_of(await self.calls(STATS_LIMIT, since=since, operation=operation))

    async def snapshot(self) -> Snapshot:
        """What this scope can use now, what is cooling, which keys are missing."""
        pool, engine = self._parts.pool, self._parts.engine
        lineup = await pool.lineup(self._scope)
        ids = {each for candidate in lineup.candidates for each in candidate.ids.values()}
        known = await engine.health.cooldowns(sorted(ids))
        return snapshot_of(lineup, pool.disabled, known, now=engine.clock())

    async def _open(self, ask: Ask) -> tuple[Attempt, LiveStream]:
        self._parts.learner.look(self._scope)
        return await self._parts.router.stream(ask)

    async def _rate(self, call_id: str, score: float) -> None:
        await self.record_quality(score, call_id=call_id)

    async def _named(self, alias: str | None, name: str | None) -> LLMConfig:
        """The declared model of that alias or name, else the registry's, else the catalog's."""
        for config in (*self._parts.direct, *await self._parts.pool.configs(self._scope)):
            if name is not None and config.name == name:
                return config
            if alias is not None and alias in (config.alias, config.name):
                return config
        known = aliases()
        if alias is not None and alias in known:
            return known[alias]
        raise UnknownModelError(
            f"no model is called {alias or name}; aliases: {', '.join(sorted(known))}"
        )

    def _ask(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSchema] | None,
        operation: str | None,
        trace_id: str | None,
        wait: float | None,
        fastest_of: int | None,
        params: Mapping[str, object] | None,
        prefer: Prefer,
        stream: bool = False,
    ) -> Ask:
        check_messages(messages)
        if wait is not None and not 0 <= wait < float("inf"):
            raise ValueError(f"wait is a number of seconds, 0 or more, or None; got {wait}")
        if fastest_of is not None and fastest_of < 1:
            raise ValueError(f"fastest_of is at least 1, got {fastest_of}")
        if prefer not in PREFERENCES:
            raise ValueError(f"prefer is one of {', '.join(PREFERENCES)}; got {prefer!r}")
        check_params(params or {})
        check_tool_choice(tools, params)
        return Ask(
            messages=messages,
            tools=tools,
            params=params,
            operation=operation,
            trace_id=trace_id,
            scope=self._scope,
            wait=wait,
            fastest_of=fastest_of or 1,
            prefer=prefer,
            stream=stream,
        )


def _with_format(
    params: Mapping[str, object] | None, response_format: Mapping[str, Any] | None
) -> Mapping[str, object] | None:
    if response_format is None:
        return params
    return {**(params or {}), "response_format": response_format}
