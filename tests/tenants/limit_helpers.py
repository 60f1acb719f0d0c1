"""What tests of limits share: a clock, a price, and calls as the gate sees them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.conf import settings
from uuid_utils.compat import uuid7

from llmbroker import LLMConfig
from llmbroker.models import Usage
from llmbroker.outgoing import Outgoing, Spent
from tenants.limits.gate import LimitGate
from tenants.limits.ledger import Ledger
from tenants.limits.rates import Rates
from tenants.services.limits import set_limit

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
CONFIG = LLMConfig("priced", "https://api.example.test/v1", "m", "A_KEY")
HELLO = [{"role": "user", "content": "hello"}]
CENT = Decimal("0.01")


class Clock:
    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now

    def seconds(self):
        return self.now.timestamp()

    def pass_by(self, seconds):
        self.now += timedelta(seconds=seconds)


def a_cent_per_answer_token(config, usage):
    return CENT * (usage.completion_tokens or 0)


def ledger():
    return Ledger(settings.REDIS_URL, prefix=f"test-{uuid7()}:")


def gate_of(clock):
    """One process's, with rates and a ledger that nobody else has."""
    rates = Rates(settings.REDIS_URL, prefix=f"test-{uuid7()}:", clock=clock.seconds)
    return LimitGate(rates, ledger(), price=a_cent_per_answer_token, clock=clock)


def outgoing(scope, *, cap=10, call_id=None):
    return Outgoing(
        str(call_id or uuid7()), str(scope.pk), CONFIG, HELLO, None, {"max_tokens": cap}
    )


def answered(tokens):
    return Spent(billed=True, usage=Usage(5, tokens, 5 + tokens))


def limited(tenant, kind, value, **whose):
    return set_limit(tenant=tenant, kind=kind, value=Decimal(value), **whose)
