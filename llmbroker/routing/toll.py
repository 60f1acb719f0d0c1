"""One request's way through a gate, where there is one."""

from __future__ import annotations

from collections.abc import Mapping

from llmbroker.models import Completion
from llmbroker.outgoing import Admission, Outgoing, Spent
from llmbroker.ports import Gate
from llmbroker.wire.failure import FailureKind

PERHAPS_BILLED = frozenset(
    {
        FailureKind.INVALID_RESPONSE,
        FailureKind.EMPTY_ANSWER,
        FailureKind.DISCONNECTED,
        FailureKind.TIMEOUT,
        FailureKind.STREAM_CUT,
    }
)
"""Failures after which a provider may have counted the request all the same."""


class Toll:
    """Paid at its worst by ``enter``; ``leave`` gives back, once, what was not used."""

    def __init__(self, gate: Gate | None, outgoing: Outgoing) -> None:
        self._gate = gate
        self._outgoing = outgoing
        self._admission: Admission | None = None

    async def enter(self) -> None:
        """Ask the gate. Raises LimitExceededError."""
        if self._gate is not None:
            self._admission = await self._gate.admit(self._outgoing)

    @property
    def params(self) -> Mapping[str, object] | None:
        """The request's parameters, with the gate's cap where the caller has none."""
        params, admission = self._outgoing.params, self._admission
        if admission is None or admission.answer_cap is None or self._outgoing.answer_cap:
            return params
        return {**(params or {}), "max_tokens": admission.answer_cap}

    async def answered(self, completion: Completion) -> None:
        """The whole answer came."""
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
