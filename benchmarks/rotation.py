"""Rotates many tenants' keys while calls use them, and opens the admin's lists over all of them.

    python benchmarks/rotation.py --size 100000

Works in a database of its own (``<name>_rotation``), made and dropped here. A call is what the
engine does before it sends: look the scope's keys up, and open the one that pays.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import os
import secrets
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

if TYPE_CHECKING:
    from collections.abc import Iterator

BATCH = 2000
ROWS_OF_A_PAGE = 50
CALLERS = 4


def set_up() -> None:
    """Settings of the environment; without any, those of a local trial."""
    os.environ.setdefault("BROKER_LOCAL", "1")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broker_project.settings")
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    from broker_project.local.services import provide_services

    provide_services()
    import django

    django.setup()


@contextmanager
def own_database() -> Iterator[None]:
    from django.db import connection

    name = connection.settings_dict["NAME"]
    connection.settings_dict["TEST"]["NAME"] = f"{name}_{Path(sys.argv[0]).stem}"
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    try:
        yield
    finally:
        connection.creation.destroy_test_db("", verbosity=0)


def a_key(name: str) -> str:
    return f"{name}:{base64.b64encode(secrets.token_bytes(32)).decode()}"


def fill(size: int) -> list[tuple[str, str]]:
    """That many tenants with a data key and a provider key each; (scope, value) of every one."""
    from uuid_utils.compat import uuid7

    from tenants import vault
    from tenants.encryption import Secret
    from tenants.models import AccessToken, DataKey, ProviderKey, Scope, Tenant
    from tenants.services.data_keys import register_encryption_key

    keyring, keys = vault.keyring(), vault.data_keys()
    register_encryption_key(kek_id=keyring.active)
    made: list[tuple[str, str]] = []
    for start in range(0, size, BATCH):
        tenants, scopes, data_keys, provider_keys, tokens = [], [], [], [], []
        for number in range(start, min(start + BATCH, size)):
            tenant = Tenant(slug=f"t{number}", name=f"tenant {number}")
            scope = Scope(tenant=tenant, kind="shared", name=tenant.name)
            fresh = keys.new(key_id=uuid7(), tenant_id=tenant.pk)
            data_key = DataKey(
                id=fresh.id, tenant=tenant, wrapped=fresh.wrapped, kek_id=keyring.active
            )
            value = f"sk-fake-{secrets.token_hex(12)}"
            key = ProviderKey(
                tenant=tenant, scope=scope, ref="A_KEY", data_key=data_key, hint=value[-4:]
            )
            key.sealed = keys.seal(fresh, vault.place_of_value(key.pk), Secret(value))
            key.fingerprint = secrets.token_bytes(32)
            tenants.append(tenant)
            scopes.append(scope)
            data_keys.append(data_key)
            provider_keys.append(key)
            tokens.append(_token_of(scope, data_key))
            made.append((str(scope.pk), value))
        for model, rows in (
            (Tenant, tenants), (Scope, scopes), (DataKey, data_keys), (ProviderKey, provider_keys),
            (AccessToken, tokens),
        ):  # fmt: skip
            model.objects.bulk_create(rows)  # type: ignore[attr-defined]
    return made


def _token_of(scope: Any, data_key: Any) -> Any:
    from tenants.models import AccessToken

    return AccessToken(
        tenant=scope.tenant,
        scope=scope,
        name=f"token of {scope.name}",
        token_id=secrets.token_hex(6),
        digest=secrets.token_bytes(32),
        pepper=data_key,
        permissions=["chat:write"],
    )


class Callers:
    """Threads that look keys up and open them until told to stop."""

    def __init__(self, made: list[tuple[str, str]]) -> None:
        self._made = made
        self._stop = threading.Event()
        self.right = 0
        self.wrong: list[str] = []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._work) for _ in range(CALLERS)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        from django.db import connection

        asyncio.run(self._calls())
        connection.close()

    async def _calls(self) -> None:
        from tenants.adapters import DjangoSecrets

        ring = DjangoSecrets({})
        while not self._stop.is_set():
            scope, value = secrets.choice(self._made)
            try:
                found = (await ring.keys("A_KEY", scope=scope))[0].value
            except Exception as error:  # noqa: BLE001 - any failure of a call is what is counted
                found = f"{type(error).__name__}: {error}"
            with self._lock:
                if found == value:
                    self.right += 1
                else:
                    self.wrong.append(found[:200])


def rotate() -> tuple[int, float]:
    """The command's own loop; how many data keys, in how many seconds."""
    from tenants.services.data_keys import forget_unused_encryption_keys, rewrap_batch

    began, done, after = time.perf_counter(), 0, None
    while (batch := rewrap_batch(after=after, size=500)).last is not None:
        done, after = done + batch.rewrapped, batch.last
        if batch.failed:
            raise RuntimeError(f"{len(batch.failed)} data keys did not open")
    forget_unused_encryption_keys()
    return done, time.perf_counter() - began


def admin_pages() -> dict[str, float]:
    """Milliseconds of the admin's pages over all these rows, the best of five."""
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    from tenants.models import ProviderKey

    settings.ALLOWED_HOSTS = ["testserver"]
    operator = User.objects.create_superuser("operator")
    browser = Client()
    browser.force_login(operator)
    key = ProviderKey.objects.order_by("?").first()
    keys, last = "/admin/tenants/providerkey/", ProviderKey.objects.count() // ROWS_OF_A_PAGE
    pages = {
        "keys": keys,
        "keys, last page": f"{keys}?p={last}",
        "keys, refused": f"{keys}?status__exact=refused",
        "keys, searched for a tenant": f"{keys}?q=t4242",
        "keys, searched for a reference": f"{keys}?q=a_k",
        "keys, searched for all tenants": f"{keys}?q=t",
        "keys, searched for two words": f"{keys}?q=a_k+t4242",
        "keys, sorted by last use": f"{keys}?o=-7",
        "one key": f"{keys}{key.pk}/change/" if key else keys,
        "scopes": "/admin/tenants/scope/",
        "scopes, last page": f"/admin/tenants/scope/?p={last}",
        "tenants": "/admin/tenants/tenant/",
        "tenants, searched": "/admin/tenants/tenant/?q=t4242",
        "tokens": "/admin/tenants/accesstoken/",
        "tokens, last page": f"/admin/tenants/accesstoken/?p={last}",
        "tokens, searched": "/admin/tenants/accesstoken/?q=t4242",
    }
    return {name: min(_milliseconds(browser, url) for _ in range(5)) for name, url in pages.items()}


def _milliseconds(browser: Any, url: str) -> float:
    began = time.perf_counter()
    answer = browser.get(url)
    if answer.status_code != 200:
        raise RuntimeError(f"{url} answered {answer.status_code}")
    return (time.perf_counter() - began) * 1000


def drill(size: int) -> dict[str, Any]:
    """Fill, rotate under load, and check every key afterwards with the old one taken away."""
    from django.conf import settings

    from tenants.context import all_tenants

    old, new = a_key("old"), a_key("new")
    settings.BROKER_ENCRYPTION_KEYS = old
    with all_tenants("the rotation drill", routine=True):
        made = fill(size)
        settings.BROKER_ENCRYPTION_KEYS = f"{new},{old}"
        with Callers(made) as callers:
            done, seconds = rotate()
        settings.BROKER_ENCRYPTION_KEYS = new
        with Callers(made) as afterwards:
            time.sleep(min(5.0, size / 1000))
    return {
        "data keys": done,
        "seconds": round(seconds, 2),
        "calls meanwhile": callers.right,
        "calls afterwards, without the old key": afterwards.right,
        "failed calls": len(callers.wrong) + len(afterwards.wrong),
        "first failures": (callers.wrong + afterwards.wrong)[:3],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=20_000)
    size = parser.parse_args().size
    set_up()
    from tenants.context import all_tenants

    with own_database():
        for name, value in drill(size).items():
            print(f"{name:40} {value}")
        with all_tenants("the rotation drill", routine=True):
            for name, value in admin_pages().items():
                print(f"admin: {name:33} {value:.0f} ms")


if __name__ == "__main__":
    main()
