"""How the running prompt functions came to be called: by whom, how deep, on which event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from llmbroker.prompts.errors import TemplateRenderError
from llmbroker.prompts.limits import TemplateLimits
from llmbroker.tools.workers import run_coroutine

Result = TypeVar("Result")


@dataclass(slots=True)
class Tally:
    """How many calls have been made through templates."""

    calls: int = 0

    def add(self, calls: int, limits: TemplateLimits) -> None:
        """Raises TemplateRenderError for too many."""
        self.calls += calls
        if self.calls > limits.calls_in_all:
            raise TemplateRenderError(f"more than {limits.calls_in_all} calls in all")


@dataclass(frozen=True, slots=True)
class Trail:
    """Follows an invocation into every thread and task that works for it."""

    loop: asyncio.AbstractEventLoop
    names: tuple[str, ...] = ()
    tally: Tally = field(default_factory=Tally)


_trail: ContextVar[Trail | None] = ContextVar("llmbroker_trail", default=None)


@contextmanager
def followed(name: str | None = None, limits: TemplateLimits | None = None) -> Iterator[Trail]:
    """Within it a function runs; ``name`` is that of a prompt function.

    Raises TemplateRenderError where prompt functions call each other too deep.
    """
    here = asyncio.get_running_loop()
    trail = replace(_trail.get() or Trail(here), loop=here)
    if name is not None:
        trail = replace(trail, names=(*trail.names, name))
    if limits is not None and len(trail.names) > limits.depth:
        raise TemplateRenderError(
            f"prompt functions call each other more than {limits.depth} deep:"
            f" {' → '.join(trail.names)}",
            function=name,
        )
    token = _trail.set(trail)
    try:
        yield trail
    finally:
        _trail.reset(token)


def run_blocking(work: Coroutine[Any, Any, Result], *, on_callers_loop: bool) -> Result:
    """The value of ``work``, for blocking code.

    A function that an invocation runs in a thread goes back to that invocation's event loop,
    to which an async broker's connections belong. ``on_callers_loop`` says that ``work`` needs
    the loop that runs here, if any; then it cannot be waited for: RuntimeError.
    """
    here = _running_loop()
    trail = _trail.get()
    if here is None and trail is not None and trail.loop.is_running():
        return asyncio.run_coroutine_threadsafe(work, trail.loop).result()
    if here is not None and on_callers_loop:
        work.close()
        raise RuntimeError("an event loop runs here and would stand still: await the async method")
    return run_coroutine(work)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
