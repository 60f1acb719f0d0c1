"""A process in which a tenant's person calls a model without end, through limits and with a budget.

python -m tests.support.tenant_caller BASE_URL

It makes the tenant first, in the database that it is pointed at, and says ``answered TRACE`` or
``failed TRACE why`` of each call. It ends what is under way, and itself, at the end of its input.
"""

import asyncio
import sys
from decimal import Decimal

import django
from django.db import connections
from django.utils import timezone
from uuid_utils import uuid7

AT_ONCE = 8
KEY = "sk-outage-marker"
LIMITS = {"requests_per_minute": 1_000_000, "concurrent_calls": AT_ONCE, "usd_per_day": 1000}
CENT = Decimal("0.01")


def make_person(base_url):
    from django.contrib.auth.models import User

    from tenants.encryption import Secret
    from tenants.models import Endpoint
    from tenants.services.keys import add_key
    from tenants.services.limits import set_limit
    from tenants.services.people import create_tenant

    user = User.objects.create_user(username="alice", email="alice@acme.example")
    new = create_tenant(slug="acme", owner=user)
    Endpoint.objects.create(
        tenant=new.tenant, name="small", base_url=base_url, model="small-1", api_key_ref="KEY"
    )
    add_key(scope=new.personal, ref="KEY", value=Secret(KEY))
    for kind, value in LIMITS.items():
        set_limit(tenant=new.tenant, kind=kind, value=Decimal(value))
    return user, new.token.text.reveal()


def spent():
    from tenants.models import Spending

    return Spending.objects.get().spent


async def call_without_end(user, token):
    """Each call looks its token and its person's scope up, as a request does."""
    from django.conf import settings

    from broker_project.broker import AsyncProjectBroker
    from broker_project.composition import broker_arguments
    from tenants.authentication import caller_by_token
    from tenants.database import in_thread
    from tenants.limits.gate import LimitGate
    from tenants.limits.ledger import Ledger
    from tenants.limits.rates import Rates

    gate = LimitGate(
        Rates(settings.REDIS_URL, prefix=f"{user.username}-{uuid7()}:"),
        Ledger(settings.REDIS_URL, prefix=f"{user.username}-{uuid7()}:"),
        price=lambda config, usage: CENT,
    )
    over = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin, over.set)
    async with AsyncProjectBroker(**{**broker_arguments(), "gate": gate}) as broker:

        async def one_after_another():
            while not over.is_set():
                trace = str(uuid7())
                try:
                    await in_thread(caller_by_token, token, now=timezone.now())
                    message = {"role": "user", "content": trace}
                    caller = broker.for_scope(user)
                    await caller.chat([message], trace_id=trace)
                    said = f"answered {trace}"
                except Exception as error:  # noqa: BLE001 - that none comes is what is tested
                    said = f"failed {trace} {type(error).__name__}: {error}".replace("\n", " ")
                sys.stdout.write(said + "\n")

        sys.stdout.write("caller ready.\n")
        await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))


if __name__ == "__main__":
    django.setup()
    from tenants.context import all_tenants

    with all_tenants("drill", routine=True):
        person = make_person(sys.argv[1])
    connections.close_all()
    asyncio.run(call_without_end(*person))
    with all_tenants("drill", routine=True):
        sys.stdout.write(f"spent {spent()}\n")
