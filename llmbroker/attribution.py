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
    keep_payload: bool | None = None
    """Whether to keep what is said; None leaves it to the tenant's own rule."""


_NOBODYS = Attribution()
_current: ContextVar[Attribution] = ContextVar("llmbroker_attribution", default=_NOBODYS)


def attribution() -> Attribution:
    """What calls made here are part of."""
    return _current.get()


@contextmanager
def attributed(
    *, run: str | None = None, step: int | None = None, keep_payload: bool | None = None
) -> Iterator[None]:
    """Calls made within belong to ``run`` and ``step``; what is not given stays as it is."""
    outer = _current.get()
    token = _current.set(
        Attribution(
            outer.run if run is None else run,
            outer.step if step is None else step,
            outer.keep_payload if keep_payload is None else keep_payload,
        )
    )
    try:
        yield
    finally:
        _current.reset(token)
