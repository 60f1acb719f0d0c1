"""What a request weighs before it leaves and after it has come back."""

from __future__ import annotations

from django.conf import settings

from llmbroker.errors import LimitExceededError
from llmbroker.models import Usage
from llmbroker.outgoing import Outgoing, Spent
from tenants.limits.rates import Refusal, Rule
from tenants.models import Limit


def worst(outgoing: Outgoing) -> Usage:
    """What a request may come to at most."""
    answer = outgoing.answer_cap or settings.BROKER_UNCAPPED_ANSWER_TOKENS
    return Usage(
        prompt_tokens=outgoing.prompt_tokens(), completion_tokens=answer * outgoing.choices
    )


def final_cost(rule: Rule, spent: Spent) -> int:
    """What of a rule a call has taken for good."""
    if rule.measures == "requests":
        return rule.cost
    if rule.measures == "calls" or not spent.billed:
        return 0
    known = spent.usage.total_tokens if spent.usage is not None else None
    return rule.cost if known is None else known


def too_much(limit: Limit, refused: Refusal) -> LimitExceededError:
    """A rate has no room for the call."""
    wait = (
        "the request alone is larger than that"
        if refused.reset_after is None
        else f"there is more in {refused.reset_after:.1f} s"
    )
    return LimitExceededError(
        f"The {limit.of}'s limit of {int(limit.value)} {limit.get_kind_display()} is reached:"
        f" {refused.remaining} left, {wait}.",
        name=limit.kind,
        of=limit.of,
        limit=str(int(limit.value)),
        remaining=str(refused.remaining),
        reset_after=refused.reset_after,
    )
