"""Settings for a machine that has none: what is unset points at servers of the checkout's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_project.local.embedded import Servers

SECRET_SETTINGS = ("SECRET_KEY", "BROKER_ENCRYPTION_KEYS")
SERVICE_SETTINGS = ("DATABASE_URL", "REDIS_URL")

_provided: list[Servers] = []


def provide_services() -> None:
    """Set DATABASE_URL and REDIS_URL, where unset, to running servers; started if need be.

    A local trial (BROKER_LOCAL) gets its secrets too; an installation must bring its own.
    Costs nothing when all are set.
    """
    if is_local() and _unset(SECRET_SETTINGS):
        from broker_project.local.paths import data_dir  # noqa: PLC0415
        from broker_project.local.secrets import local_secrets  # noqa: PLC0415

        _fill(local_secrets(data_dir()))
    missing = _unset(SERVICE_SETTINGS)
    if missing and not _unset(SECRET_SETTINGS):  # else the settings say first what is missing
        servers = _servers(*missing)
        _provided.append(servers)
        _fill(servers.provide())


@contextmanager
def services() -> Iterator[None]:
    """Provide for the length of a block; at its end stop what nobody else uses."""
    try:
        provide_services()
        yield
    finally:
        while _provided:
            servers = _provided.pop()
            servers.leave()
            servers.stop()


def stop_services() -> list[str]:
    """Stop the embedded servers of this checkout, whoever uses them; the names of those stopped."""
    return _servers(*SERVICE_SETTINGS).stop(even_if_used=True)


def is_local() -> bool:
    """Whether this is a trial on one's own machine."""
    return os.environ.get("BROKER_LOCAL", "").lower() in {"1", "true", "yes", "on"}


def _unset(names: tuple[str, ...]) -> list[str]:
    return [name for name in names if not any(map(os.environ.get, (name, f"{name}_FILE")))]


def _fill(values: dict[str, str]) -> None:
    os.environ.update({name: value for name, value in values.items() if _unset((name,))})


def _servers(*settings: str) -> Servers:
    # Imported here: a process whose settings are complete must not pay for any of this.
    from broker_project.local.embedded import Server, Servers  # noqa: PLC0415
    from broker_project.local.paths import data_dir  # noqa: PLC0415
    from broker_project.local.postgres import Postgres  # noqa: PLC0415
    from broker_project.local.valkey import Valkey  # noqa: PLC0415

    folder = data_dir()
    known: list[Server] = [
        Postgres(folder / "postgres", folder / "log" / "postgres.log"),
        Valkey(folder / "valkey", folder / "log" / "valkey.log"),
    ]
    return Servers(folder, [server for server in known if server.setting in settings])
