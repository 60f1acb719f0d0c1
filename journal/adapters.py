"""The engine's journal port over PostgreSQL."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from journal import selectors, services
from journal.batches import Kind, record_of
from journal.models import INSTALLATION
from journal.models import Call as Row
from journal.payloads import keep_payload, payload_rules
from journal.process_writer import process_writer
from journal.rows import call_of, row_of, scope_id_of
from journal.telemetry import observe
from llmbroker.attribution import attribution
from llmbroker.errors import LLMBrokerError
from llmbroker.models import Call, CallStatus, Rated, check_score
from tenants.context import INSTALLATION as OWN
from tenants.context import all_tenants, scope_active
from tenants.database import in_thread
from tenants.errors import NotFound
from tenants.outage import process_memory
from tenants.selectors import reach_of, scope_of

T = TypeVar("T")

log = logging.getLogger(__name__)


class DjangoStore:
    """The journal's tables as an ``IntentStore``, written by the one writer of this process."""

    async def begin(self, call: Call) -> None:
        """Write the intent; returns when it is durable."""
        await _written(Kind.INTENT, row_of(call))

    async def record(self, call: Call) -> None:
        """Write the outcome, once; returns when it is durable."""
        await _written(Kind.OUTCOME, row_of(call))
        observe(call)

    async def record_payload(
        self, call: Call, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]
    ) -> None:
        """Keep what was said, where the call or its tenant's rule asks for it."""
        wanted = attribution().keep_payload
        if call.scope is None or wanted is False:
            return
        try:
            scope_id, call_id = scope_id_of(call.scope), UUID(call.id)
            if wanted or await payload_rules.keeps(scope_id):
                said = {"messages": list(messages), "answer": dict(answer)}
                keep = partial(keep_payload, scope_id=scope_id, call_id=call_id, said=said)
                if await process_memory().attempt(partial(_within, scope_id, keep)) is None:
                    log.error("journal: the database is away: call %s has no payload", call.id)
        except Exception:
            log.exception("journal: the payload of call %s could not be kept", call.id)

    async def record_quality(self, call_id: str, score: float, *, scope: str | None = None) -> None:
        """Append a rating; KeyError if this scope has no such answered call."""
        check_score(score)
        try:
            scope_id = None if scope is None else scope_id_of(scope)
            identity = UUID(call_id)
            await in_thread(
                _within,
                scope_id,
                lambda: services.rate(score=score, scope_id=scope_id, call_id=identity),
            )
        except (ValueError, NotFound, LLMBrokerError):
            raise KeyError(call_id) from None

    async def ratings(self, *, limit: int, scope: str | None) -> list[Rated]:
        """The newest rating of each rated call among the newest ``limit`` calls of ``scope``."""
        scope_id = INSTALLATION if scope is None else scope_id_of(scope)
        rated = partial(selectors.ratings_of_scope, scope_id, newest=limit)
        return await in_thread(_within, scope_id, rated)

    async def calls(
        self,
        *,
        limit: int,
        scope: str | None = None,
        since: datetime | None = None,
        operation: str | None = None,
        trace_id: str | None = None,
        call_id: str | None = None,
    ) -> list[Call]:
        """The newest ``limit`` attempts that match, newest first."""
        if limit < 1:
            raise ValueError(f"limit is at least 1, got {limit}")
        try:
            identity = None if call_id is None else UUID(call_id)
        except ValueError:
            return []
        calls = selectors.calls_of_installation()
        if scope is not None:
            calls = selectors.calls_of_scope(scope_id_of(scope))
        calls = selectors.narrowed(
            calls, id=identity, operation=operation, trace_id=trace_id, since=since
        )
        newest = selectors.with_score(calls).order_by("-id")[:limit]
        scope_id = None if scope is None else scope_id_of(scope)
        rows = await in_thread(_within, scope_id, lambda: list[Row](newest))
        return [call_of(row) for row in rows]


def _within(scope_id: UUID | None, work: Callable[[], T]) -> T:
    """Do ``work`` as that scope; without one it is the operator's, over everybody's rows."""
    if scope_id is None:
        with all_tenants("the journal of the installation", routine=True):
            return work()
    if scope_id == INSTALLATION:
        with scope_active(OWN):
            return work()
    try:
        reach = reach_of(scope_of(scope_id))
    except NotFound:
        reach = None
    if reach is None:
        raise LLMBrokerError(f"there is no scope {scope_id}, or no longer")
    with scope_active(reach):
        return work()


async def _written(kind: Kind, row: Row) -> None:
    if kind is Kind.INTENT:
        row.status = CallStatus.STARTED.value
    await asyncio.wrap_future(process_writer().submit(record_of(kind, row)))
