"""A time limit on a function that cannot be stopped."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from django.db import connections

T = TypeVar("T")


def within(seconds: float, function: Callable[[], T]) -> T:
    """The value of the function, which runs in a thread of its own. Raises what it raises.

    After ``seconds`` TimeoutError: the thread goes on, but nothing waits for it, its value is
    dropped, and however many hang, the next call has a thread.
    """
    future: Future[T] = Future()
    run = contextvars.copy_context().run
    threading.Thread(target=run, args=(_settle, future, function), name="tool", daemon=True).start()
    if not wait([future], seconds).done:
        raise TimeoutError(f"no result within {seconds:g} seconds")
    return future.result()


def _settle(future: Future[T], function: Callable[[], T]) -> None:
    try:
        future.set_result(function())
    except BaseException as error:  # noqa: BLE001 - raised where the result is wanted
        future.set_exception(error)
    finally:
        connections.close_all()  # to the pool: the thread ends here
