"""What each wall costs, per query and per call, as a ratio to the same without it.

    python benchmarks/walls.py --rounds 7 --times 200

Every way is tried in turn, round after round, so that what else the machine does falls on all
alike; the median of the rounds counts. "Without" runs as the tables' owner, unstamped, through
a manager that filters nothing. A call is what the engine asks of the database for one attempt:
the keys, the intent, the outcome, and the gate.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.rotation import fill, own_database, set_up

Work = Callable[[], Any]


def timed(ways: dict[str, Work], *, rounds: int, times: int) -> dict[str, float]:
    """Milliseconds per piece of work."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, work in ways.items():
            work()  # what a change of ways brings along is not counted
            began = time.perf_counter()
            for _ in range(times):
                work()
            found[name].append((time.perf_counter() - began) / times * 1000)
    return {name: statistics.median(values) for name, values in found.items()}


def show(title: str, figures: dict[str, float], *, base: str) -> None:
    print(f"\n| {title} | ms | ratio |\n| --- | --- | --- |")
    for name, value in figures.items():
        print(f"| {name} | {value:.2f} | {value / figures[base]:.2f} |")


@contextmanager
def unstamped() -> Iterator[None]:
    """The connection as Django's own backend would have it."""
    from django.db import connection

    connection._owner = True  # type: ignore[attr-defined]  # noqa: SLF001
    try:
        yield
    finally:
        connection._owner = False  # type: ignore[attr-defined]  # noqa: SLF001


def query(rows: Any, where: Work, *, times: int = 1) -> Work:
    """Fetch ``rows`` within ``where``; several times in one transaction."""
    from django.db import transaction

    def work() -> None:
        with where(), transaction.atomic() if times > 1 else nullcontext():
            for _ in range(times):
                list(rows.all())

    return work


def queries(reach: Any) -> dict[str, Work]:
    """One query for a scope's keys, and five of them in one transaction."""
    from tenants.context import all_tenants, scope_active
    from tenants.models import ProviderKey

    filtered = ProviderKey.objects.filter(scope_id=reach.scope_id)
    unfiltered = ProviderKey._base_manager.filter(scope_id=reach.scope_id)  # noqa: SLF001
    scope = partial(scope_active, reach)
    operator = partial(all_tenants, "benchmark", routine=True)
    return {
        "one query, without walls": query(unfiltered, unstamped),
        "one query, the database's wall": query(unfiltered, scope),
        "one query, both walls": query(filtered, scope),
        "one query, through all walls": query(filtered, operator),
        "five in a transaction, without walls": query(unfiltered, unstamped, times=5),
        "five in a transaction, both walls": query(filtered, scope, times=5),
    }


def token_check(text: str) -> dict[str, Work]:
    from django.utils import timezone

    from tenants.authentication import caller_by_token
    from tenants.context import scope_active

    def work() -> None:
        with scope_active(None):
            caller_by_token(text, now=timezone.now())

    return {"look-up and check of an access token": work}


def attempt_of(scope: str, gate: Any) -> Callable[..., Any]:
    """What one attempt at a provider asks of us, all but the request itself."""
    from uuid_utils.compat import uuid7

    from journal.adapters import DjangoStore
    from llmbroker.models import Call, CallStatus, LLMConfig, Usage
    from llmbroker.outgoing import Outgoing, Spent
    from tenants.adapters import DjangoSecrets

    config = LLMConfig("m", "https://a.example.test", "m", "A_KEY")
    secrets, store = DjangoSecrets({}), DjangoStore()

    async def attempt(*, gated: bool) -> None:
        call_id = str(uuid7())
        await secrets.keys("A_KEY", scope=scope)
        admission = None
        if gated:
            hello = [{"role": "user", "content": "hello"}]
            admission = await gate.admit(Outgoing(call_id, scope, config, hello))
        row = Call(call_id, "m", None, None, CallStatus.STARTED, scope=scope)
        await store.begin(row)
        await store.record(Call(call_id, "m", None, None, CallStatus.OK, scope=scope))
        if admission is not None:
            await gate.settle(admission, Spent(billed=True, usage=Usage(5, 5, 10)))

    return attempt


def calls(reach: Any) -> dict[str, Work]:
    """An attempt with ever more limits in force."""
    from django.conf import settings

    from tenants.context import all_tenants
    from tenants.limits.gate import KNOWN_FOR, LimitGate
    from tenants.limits.ledger import Ledger
    from tenants.limits.rates import Rates
    from tenants.models import Limit, Tenant
    from tenants.services.limits import set_limit

    loop = asyncio.new_event_loop()
    gate = LimitGate(
        Rates(settings.REDIS_URL),
        Ledger(settings.REDIS_URL),
        price=lambda *_: Decimal("0.001"),
    )
    attempt = attempt_of(str(reach.scope_id), gate)

    def with_limits(*kinds: str) -> None:
        with all_tenants("benchmark", routine=True):
            Limit.objects.all().delete()
            tenant = Tenant.objects.get(pk=reach.tenant_id)
            for kind in kinds:
                set_limit(tenant=tenant, kind=kind, value=Decimal(10**9))

    def work(*kinds: str, gated: bool = True) -> Work:
        def run() -> None:
            if in_force != [kinds]:
                with_limits(*kinds)
                in_force[:] = [kinds]
                time.sleep(KNOWN_FOR)  # the gate has forgotten the former ones by then
            loop.run_until_complete(attempt(gated=gated))

        return run

    in_force: list[tuple[str, ...]] = []
    rates = ("requests_per_minute", "tokens_per_minute", "concurrent_calls")
    return {
        "a call, no gate": work(gated=False),
        "a call, a gate without limits": work(),
        "a call, three rates": work(*rates),
        "a call, three rates and two budgets": work(*rates, "usd_per_day", "usd_per_month"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--tenants", type=int, default=1000)
    options = parser.parse_args()
    set_up()
    from django.contrib.auth.models import User

    from tenants.context import Reach, all_tenants
    from tenants.models import Scope
    from tenants.services.people import create_tenant

    how = {"rounds": options.rounds, "times": options.times}
    with own_database():
        with all_tenants("benchmark", routine=True):
            made = fill(options.tenants)
            scope = Scope.objects.get(pk=made[len(made) // 2][0])
            token = create_tenant(slug="bench", owner=User.objects.create_user("bench")).token
            reach = Reach(scope.tenant_id, scope.pk)
        found = timed(queries(reach) | token_check(token.text.reveal()), **how)
        show("query", found, base="one query, without walls")
        found = timed(calls(reach), **how)
        show("call", found, base="a call, no gate")


if __name__ == "__main__":
    main()
