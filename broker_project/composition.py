"""Joins the parts: the engine's ports, implemented by the apps. Nothing else imports adapters."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from broker_project.outage import RememberedRegistry, RememberedSecrets
from broker_project.shared_health import SharedHealth
from llmbroker.catalog import pool
from llmbroker.environment import environment_models
from llmbroker.prices import price_of
from tenants.addresses import address_policy
from tenants.outage import process_memory


def broker_arguments() -> dict[str, Any]:
    """What AsyncBroker and Broker are built with in this installation."""
    # Adapters import models, which exist only once Django's apps are loaded.
    from journal.adapters import DjangoStore  # noqa: PLC0415
    from tenants.adapters import DjangoRegistry, DjangoSecrets  # noqa: PLC0415
    from tenants.limits.gate import LimitGate  # noqa: PLC0415
    from tenants.limits.ledger import Ledger  # noqa: PLC0415
    from tenants.limits.rates import Rates  # noqa: PLC0415

    common = [*environment_models(), *pool()]
    memory = process_memory()
    return {
        "gate": LimitGate(Rates(settings.REDIS_URL), Ledger(settings.REDIS_URL), memory=memory),
        "health": SharedHealth(settings.REDIS_URL),
        "policy": address_policy(),
        "registry": RememberedRegistry(DjangoRegistry(common), memory),
        "secrets": RememberedSecrets(DjangoSecrets(), memory),
        "store": DjangoStore(),
        "pricing": price_of,
    }
