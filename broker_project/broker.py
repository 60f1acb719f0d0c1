"""The process-wide brokers: ``from broker_project.broker import broker, abroker``.

Both are made on first use, open connections with their first call, and may be imported
before a fork. ``broker`` is for blocking code and any thread, ``abroker`` for one event loop.
"""

from __future__ import annotations

import functools
from typing import Any
from uuid import UUID

from broker_project.composition import broker_arguments
from llmbroker import AsyncBroker, AsyncCaller, Broker, Caller
from tenants.context import current
from tenants.database import from_loop
from tenants.outage import process_memory
from tenants.selectors import ScopeLike, scope_of


class ProjectBroker(Broker):
    """A Broker that knows who the project's users are."""

    def for_scope(self, scope: ScopeLike) -> Caller:
        """A caller for a user, a Scope or a scope's id.

        A user means that user's personal scope in their only tenant. Raises NotFound.
        """
        return super().for_scope(_id_of(scope))


class AsyncProjectBroker(AsyncBroker):
    """An AsyncBroker that knows who the project's users are."""

    def for_scope(self, scope: ScopeLike) -> AsyncCaller:
        """See ProjectBroker.for_scope. Waits for one short query, made in another thread."""
        return super().for_scope(from_loop(_id_of, scope))


def _id_of(scope: ScopeLike) -> str:
    """Asked each time; while the database is away, a scope in use is the one it was."""
    subject = scope if isinstance(scope, str | UUID) else (type(scope), scope.pk)
    question = ("scope", current(), subject)
    return str(process_memory().ask_now(question, lambda: scope_of(scope).pk))


@functools.cache
def project_broker() -> ProjectBroker:
    """The blocking broker of this process."""
    return ProjectBroker(**broker_arguments())


@functools.cache
def async_project_broker() -> AsyncProjectBroker:
    """The async broker of this process."""
    return AsyncProjectBroker(**broker_arguments())


def __getattr__(name: str) -> Any:
    if name == "broker":
        return project_broker()
    if name == "abroker":
        return async_project_broker()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
