"""The ORM from async code: few threads, and no connection kept between calls."""

import asyncio
import contextvars
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import connections

P = ParamSpec("P")
T = TypeVar("T")

# A query takes about a millisecond of mostly our own CPU: more threads would only wait for the GIL
# while holding connections of the pool.
THREADS = 8


async def in_thread(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run ``fn`` in a database thread, within the caller's context variables."""
    context = contextvars.copy_context()
    call = functools.partial(context.run, functools.partial(_released, fn, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(_executor(), call)


def from_loop(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run ``fn`` in a database thread and wait, for one short query of blocking code that an
    event loop may be running: Django refuses the ORM there."""
    context = contextvars.copy_context()
    call = functools.partial(context.run, functools.partial(_released, fn, *args, **kwargs))
    return _executor().submit(call).result()


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
