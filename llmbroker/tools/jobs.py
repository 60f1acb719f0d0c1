"""One function on its way through a thread, and back to the event loop that waits for it."""

from __future__ import annotations

import asyncio
import contextvars
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from llmbroker.tools.tempo import tempo


class Job:
    """The future is the event loop's own: a concurrent.futures.Future beside it, and the chain
    between the two, would cost as much as the change of threads."""

    def __init__(self, work: Callable[[], Any], function: object) -> None:
        """``function`` is what ``work`` calls in the end, by which it is known next time."""
        loop = asyncio.get_running_loop()
        self.function = function
        self.post = _post_of(loop)
        self.future: asyncio.Future[Any] = loop.create_future()
        self._work = work
        self._context = contextvars.copy_context()
        self._value: Any = None
        self._error: Exception | None = None

    def work(self) -> None:
        """Run the function, in its caller's context, unless nobody waits for it any more."""
        if self.future.cancelled():
            return
        began = time.perf_counter()
        try:
            self._value = self._context.run(self._work)
        except StopIteration as error:  # a future does not take it
            self._error = RuntimeError(f"StopIteration {error}")
        except Exception as error:  # noqa: BLE001 - raised where the result is wanted
            self._error = error
        except BaseException as error:  # noqa: BLE001 - a tool's sys.exit() ends the tool only
            self._error = RuntimeError(f"the tool left with {type(error).__name__}")
        tempo.note(self.function, time.perf_counter() - began)

    def deliver(self) -> None:
        """Hand the outcome over to the event loop, if that still runs."""
        self.post.add(self)

    def fail(self, error: Exception) -> None:
        """It was not run, because of ``error``."""
        self._error = error
        self.deliver()

    def settle(self) -> None:
        """Give the outcome to who waits for it. On the event loop's thread."""
        if self.future.done():
            return
        if self._error is None:
            self.future.set_result(self._value)
        else:
            self.future.set_exception(self._error)


class Post:
    """What is ready for one event loop, which is told once, however much is ready by then."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.is_watching = False  # see Workers
        self._loop = weakref.ref(loop)
        self._ready: deque[Job] = deque()
        self._is_told = False

    def add(self, job: Job) -> None:
        """From any thread."""
        self._ready.append(job)
        loop = self._loop()
        if self._is_told or loop is None:
            return
        self._is_told = True
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        self._is_told = False  # first: what is added from here on tells anew
        while self._ready:
            self._ready.popleft().settle()


_posts: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Post] = weakref.WeakKeyDictionary()


def _post_of(loop: asyncio.AbstractEventLoop) -> Post:
    post = _posts.get(loop)
    if post is None:
        post = _posts[loop] = Post(loop)
    return post
