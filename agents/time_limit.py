"""A time limit on a function that cannot be stopped."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any

from django.db import connections


def within(seconds: float, function: Callable[..., object], arguments: Mapping[str, Any]) -> object:
    """The value of the function, which runs in a thread of its own. Raises what it raises.

    After ``seconds`` TimeoutError: the thread cannot be stopped, but nothing waits for it and
    its value is dropped.
    """
    future: Future[object] = Future()
    run = contextvars.copy_context().run
    threading.Thread(
        target=run, args=(_settle, future, function, arguments), name="tool", daemon=True
    ).start()
    if not wait([future], seconds).done:
        raise TimeoutError(f"no result within {seconds:g} seconds")
    return future.result()


def _settle(
    future: Future[object], function: Callable[..., object], arguments: Mapping[str, Any]
) -> None:
    try:
        future.set_result(function(**arguments))
    except Exception as error:  # noqa: BLE001 - raised where the result is wanted
        future.set_exception(error)
    except BaseException as error:  # noqa: BLE001 - a tool's sys.exit() is not the worker's
        future.set_exception(RuntimeError(repr(error)))
    finally:
        connections.close_all()
