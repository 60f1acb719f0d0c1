"""One request's way through a gate, where there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from llmbroker.models import Completion
from llmbroker.outgoing import Admission, Outgoing, Spent
from llmbroker.ports import Gate
from llmbroker.wire.failure import FailureKind
from llmbroker.wire.params import capped

PERHAPS_BILLED = frozenset(
    {
        FailureKind.INVALID_RESPONSE,
        FailureKind.MALFORMED_OUTPUT,
        FailureKind.EMPTY_ANSWER,
        FailureKind.DISCONNECTED,
        FailureKind.TIMEOUT,
        FailureKind.STREAM_CUT,
    }
)
"""Failures after which a provider may have counted the request all the same."""


class Toll:
    """Paid at its worst by ``enter``; the first of the others gives back what was not used.

    ``params`` are the request's, with the gate's cap of the answer where the caller has none.
    """

    def __init__(self, gate: Gate | None, params: Mapping[str, object] | None) -> None:
        self.params = params
        self._gate = gate
        self._admission: Admission | None = None

    async def enter(self, outgoing: Callable[[], Outgoing]) -> None:
        """Show the gate what is about to leave. Raises LimitExceededError."""
        if self._gate is None:
            return
        request = outgoing()
        self._admission = admission = await self._gate.admit(request)
        if admission is not None and admission.answer_cap is not None and not request.answer_cap:
            self.params = capped(self.params, admission.answer_cap)

    async def answered(self, completion: Completion) -> None:
        """The whole answer came."""
        if self._admission is not None:
            await self._leave(
                Spent(billed=True, usage=completion.usage, model=completion.model_answered)
            )

    async def failed(self, kind: FailureKind) -> None:
        """It failed in this way."""
        await self._leave(Spent(billed=kind in PERHAPS_BILLED))

    async def abandoned(self, *, sent: bool = True) -> None:
        """Nobody waits for it any more."""
        await self._leave(Spent(billed=sent))

    async def _leave(self, spent: Spent) -> None:
        admission, self._admission = self._admission, None
        if self._gate is not None and admission is not None:
            await self._gate.settle(admission, spent)
