"""One logical call: what is asked, and what has become of it so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from llmbroker.errors import LLMRequestError, NoLLMAvailableError
from llmbroker.models import Message, ToolSchema
from llmbroker.routing.candidates import Candidate
from llmbroker.routing.verdict import Next, next_step
from llmbroker.wire.failure import Failure, FailureKind

Prefer = Literal["quality", "latency", "cost"]
"""What decides the order in which models are tried."""

PREFERENCES: tuple[str, ...] = get_args(Prefer)

PATIENCE = 120.0
"""Seconds that ``wait=None`` waits for a candidate to come back."""

RECHECK = 1.0
"""Seconds between two looks at the pool while waiting: other processes may have news."""

MAX_ATTEMPTS = 8
"""Requests that one call may cost in all, however many models the pool has."""


@dataclass(slots=True)  # not frozen: that triples what making one costs, and one is made per call
class Ask:
    """What the caller wants, the same for every attempt.

    ``wait`` is in seconds: None waits as long as something can come back, 0 never queues,
    a number bounds queueing and answer together.
    """

    messages: Sequence[Message]
    tools: Sequence[ToolSchema] | None = None
    params: Mapping[str, object] | None = None
    operation: str | None = None
    trace_id: str | None = None
    scope: str | None = None
    wait: float | None = None
    fastest_of: int = 1
    prefer: Prefer = "quality"
    stream: bool = False


@dataclass(slots=True)
class Progress:
    """What this call has tried. Decides what it may still try, and which error it ends with."""

    attempts: int = 0
    failures: list[tuple[str, Failure]] = field(default_factory=list)
    final: LLMRequestError | None = None
    _excluded: set[tuple[str, str]] = field(default_factory=set)
    _asked_again: set[str] = field(default_factory=set)
    _larger_than: int | None = None
    _timeouts: int = 0

    @property
    def attempts_left(self) -> int:
        """How many more requests this call may cost."""
        return max(MAX_ATTEMPTS - self.attempts, 0)

    def allows(self, candidate: Candidate) -> bool:
        """Whether ``candidate`` may be tried, or tried again, in this call."""
        if (candidate.name, candidate.key.id) in self._excluded:
            return False
        window = candidate.config.context_window
        return self._larger_than is None or (window is not None and window > self._larger_than)

    def absorb(self, candidate: Candidate, failure: Failure) -> None:
        """Take a failed attempt into account."""
        self.failures.append((candidate.name, failure))
        step = next_step(failure.kind, should_retry=failure.should_retry)
        if step is Next.RETURN:
            self.final = failure.to_error(candidate.name)
        elif step is Next.LARGER_WINDOW:
            self._larger_than = max(candidate.config.context_window or 0, self._larger_than or 0)
            self._exclude(candidate)
        elif self._may_ask_again(step, candidate, failure):
            self._asked_again.add(candidate.name)
        elif step is Next.MOVE_ON_ONCE:
            self._timeouts += 1
            if self._timeouts > 1:
                self.final = failure.to_error(candidate.name)
        elif failure.kind in _HOPELESS or step in _ASKED_NO_MORE:
            self._exclude(candidate)
        if self.final is None and self.attempts >= MAX_ATTEMPTS:
            self.final = self.exhausted()

    def exhausted(self) -> LLMRequestError:
        """The error when nothing is left to try: the request's own fault first, if it has one."""
        for name, failure in self.failures:
            if failure.kind in _FAULTS_OF_THE_REQUEST:
                return failure.to_error(name)
        return NoLLMAvailableError(self.summary(), reason="excluded")

    def summary(self) -> str:
        """What was tried and what came of it, in one sentence."""
        tried = "; ".join(
            dict.fromkeys(str(failure.to_error(name)) for name, failure in self.failures)
        )
        return f"no model could answer: {tried}" if tried else "no model could answer"

    def _may_ask_again(self, step: Next, candidate: Candidate, failure: Failure) -> bool:
        """Whether the same candidate is worth a second try; one that it gets only once."""
        if candidate.name in self._asked_again:
            return False
        return step is Next.AGAIN or (step is Next.CORRECT and failure.param is not None)

    def _exclude(self, candidate: Candidate) -> None:
        self._excluded.add((candidate.name, candidate.key.id))


class Trip:
    """One call on its way: what is asked, what was tried, how much time is left."""

    def __init__(self, ask: Ask, clock: Callable[[], float]) -> None:
        self.ask = ask
        self.progress = Progress()
        self._clock = clock
        self._queue_until = clock() + (PATIENCE if ask.wait is None else ask.wait)
        self._answer_until = clock() + ask.wait if ask.wait else None

    @property
    def queue_seconds(self) -> float:
        """How long the call may still wait for a candidate."""
        return self._queue_until - self._clock()

    @property
    def answer_seconds(self) -> float | None:
        """How long an answer may still take, where the caller bounds it."""
        if self._answer_until is None:
            return None
        return max(self._answer_until - self._clock(), 0.001)

    @property
    def budget_spent(self) -> bool:
        """Whether the caller's own time has run out."""
        until = self._answer_until
        return until is not None and self._clock() >= until - _CLOCKS_DIFFER


_CLOCKS_DIFFER = 0.02  # a timer may ring a little before the wall clock says so

_ASKED_NO_MORE = frozenset({Next.LEAVE, Next.AGAIN, Next.CORRECT})
_HOPELESS = frozenset(
    {
        FailureKind.KEY_REFUSED,
        FailureKind.QUOTA_EXHAUSTED,
        FailureKind.MODEL_NOT_FOUND,
        FailureKind.LIMIT_REACHED,
    }
)
_FAULTS_OF_THE_REQUEST = frozenset(
    {FailureKind.CONTEXT_LENGTH, FailureKind.BAD_REQUEST, FailureKind.UNSUPPORTED_PARAMETER}
)
