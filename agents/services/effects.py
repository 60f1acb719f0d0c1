"""For tools that write through our ORM: the effect and its record in one transaction.

    @function(effect="idempotent")
    def order(article: str, context: ToolContext) -> str:
        with recorded(context) as record:
            Order.objects.create(article=article)
            return record(f"ordered {article}")

Either both are there or neither, so such a tool may be run again whenever its outcome is not
known: it is idempotent, whatever it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import transaction

from agents.models import Run, Step
from llmbroker import ToolContext, ToolStatus
from llmbroker.tools.execution import as_text


class EffectNotWantedError(Exception):
    """The call has a result already, or its run is over: nothing may be done for it."""


@contextmanager
def recorded(context: ToolContext) -> Iterator[Callable[[object], str]]:
    """A transaction; what it yields takes the result, and stores it as the call's.

    Raises EffectNotWantedError before anything is done. The call's row stays locked to the end,
    so that of two workers that both think it theirs, one waits and is then refused.
    """
    with transaction.atomic():
        step = (
            Step.objects.select_for_update(of=("self",))
            .filter(
                run_id=context.run_id or "",
                tool_call_id=context.tool_call_id,
                status=Step.Status.IN_PROGRESS,
                result=None,
                run__status__in=Run.WORKING,
            )
            .first()
        )
        if step is None:
            raise EffectNotWantedError("this call has been made, or is no longer wanted")

        def record(result: object) -> str:
            step.result, step.outcome = as_text(result), ToolStatus.SUCCESS
            step.save(update_fields=["result", "outcome"])
            return step.result

        yield record
