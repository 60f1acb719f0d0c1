"""Which part of a greater work a call is: a run's step, told along without passing it down.

It reaches the journal from blocking code too: the loop's thread takes the context of whoever
hands it work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attribution:
    """The run and the number of its step."""

    run: str | None = None
    step: int | None = None


_NOBODYS = Attribution()
_current: ContextVar[Attribution] = ContextVar("llmbroker_attribution", default=_NOBODYS)


def attribution() -> Attribution:
    """What calls made here are part of."""
    return _current.get()


@contextmanager
def attributed(*, run: str, step: int | None = None) -> Iterator[None]:
    """Calls made within belong to ``run`` and ``step``."""
    token = _current.set(Attribution(run, step))
    try:
        yield
    finally:
        _current.reset(token)
