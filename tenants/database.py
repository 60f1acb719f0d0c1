"""The ORM from async code: few threads, and no connection kept between calls."""

import asyncio
import contextvars
import functools
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import connections

from tenants.asking import Asking
from tenants.context import current

_asking = Asking()

P = ParamSpec("P")
T = TypeVar("T")

# A query takes about a millisecond of mostly our own CPU: more threads would only wait for the GIL
# while holding connections of the pool.
THREADS = 8


async def in_thread(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run ``fn`` in a database thread, within the caller's context variables."""
    return await asyncio.wrap_future(_submitted(fn, *args, **kwargs))


async def in_thread_shared(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """``in_thread`` for what only reads: callers of the same with equal arguments, within the
    same scope, share one query as far as they ask at the same time. Nobody may change the value.
    """
    question = (fn, args, tuple(kwargs.items()), current())
    return await _asking.ask(question, functools.partial(in_thread, fn, *args, **kwargs))


def from_loop(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run ``fn`` in a database thread and wait, for one short query of blocking code that an
    event loop may be running: Django refuses the ORM there."""
    return _submitted(fn, *args, **kwargs).result()


def _submitted(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    context = contextvars.copy_context()
    return _executor().submit(context.run, functools.partial(_released, fn, *args, **kwargs))


def _released(fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return fn(*args, **kwargs)
    finally:
        connections.close_all()  # to the pool, not to the server


@functools.cache
def _executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="broker-database")


# Threads do not survive a fork: a child starts with an executor of its own.
os.register_at_fork(after_in_child=_executor.cache_clear)
