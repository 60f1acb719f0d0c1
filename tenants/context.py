"""Whose rows the running code may touch: one variable, entered through one function.

Requests, tasks, commands, streams and async code all use ``scope_active``. Outside of it a
tenant's table can be neither read (``ScopedManager`` raises ``ScopeRequired``) nor written
(row-level security refuses). The database backend stamps every transaction with what is here.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

T = TypeVar("T")

log = logging.getLogger("tenants.walls")

WHOLE_TENANT = "*"
APPLICATION = "broker_app"
ADMINISTRATION = "broker_admin"


class ScopeRequired(RuntimeError):  # noqa: N818 - names what is missing
    """A tenant's table was queried outside of any scope: enter ``scope_active`` first."""

    def __init__(self) -> None:
        super().__init__(
            "a tenant's table was queried outside of a scope: enter tenants.context.scope_active,"
            " or all_tenants(reason) in the operator's own code"
        )


@dataclass(frozen=True, slots=True)
class Reach:
    """One scope of one tenant; without a scope the whole tenant."""

    tenant_id: UUID
    scope_id: UUID | None = None
    token_id: UUID | None = field(default=None, compare=False)
    """The access token that is acted with: its own limits hold as well."""
    actor: str = field(default="", compare=False)
    """Who acts, for the audit log."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """One row by a name that its holder was given, before it is known whose it is.

    Policies of the tables concerned let exactly that row be read: ``token:…``, ``scope:…``,
    ``user:…`` (their memberships), ``run:…``.
    """

    name: str


@dataclass(frozen=True, slots=True)
class AllTenants:
    """The operator's own code: every row, as the administration's role."""

    reason: str = field(compare=False)


INSTALLATION = Reach(UUID(int=0), UUID(int=0))
"""Where the installation's own calls stand in the journal."""

Where = Reach | Lookup | AllTenants

_where: ContextVar[Where | None] = ContextVar("tenants_where", default=None)


def current() -> Where | None:
    """Where the running code is; None outside."""
    return _where.get()


def required() -> Reach | AllTenants:
    """What bounds an ORM query now. Raises ScopeRequired outside of any scope."""
    where = _where.get()
    if where is None or isinstance(where, Lookup):
        raise ScopeRequired
    return where


@contextmanager
def scope_active(where: Where | None) -> Iterator[None]:
    """Run the block within ``where``; with None, outside of every scope."""
    token = _where.set(where)
    try:
        yield
    finally:
        _where.reset(token)


def enter(where: Where) -> None:
    """Set where the rest of the innermost ``scope_active`` block runs.

    For authentication, which learns in the middle of a request whose it is; the middleware
    has opened the block.
    """
    _where.set(where)


@contextmanager
def all_tenants(reason: str, *, routine: bool = False) -> Iterator[None]:
    """The explicit way through the walls, for administration and maintenance; it is logged.

    What happens every few seconds is ``routine`` and logged as DEBUG only.
    """
    log.log(logging.DEBUG if routine else logging.INFO, "through all walls: %s", reason)
    with scope_active(AllTenants(reason)):
        yield


def enter_all_tenants(reason: str) -> None:
    """``enter`` for an operator's request that asks for everybody's rows; it is logged."""
    log.info("through all walls: %s", reason)
    enter(AllTenants(reason))


def bound(where: Where | None, pieces: Iterable[T]) -> Iterator[T]:
    """The pieces of a stream, each made within ``where``: it is read after its view returned."""
    iterator = iter(pieces)
    while True:
        with scope_active(where):
            try:
                piece = next(iterator)
            except StopIteration:
                return
        yield piece


async def abound(where: Where | None, pieces: AsyncIterable[T]) -> AsyncIterator[T]:
    """``bound`` for an asynchronous stream."""
    iterator = aiter(pieces)
    while True:
        with scope_active(where):
            try:
                piece = await anext(iterator)
            except StopAsyncIteration:
                return
        yield piece
