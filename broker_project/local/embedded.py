"""Servers of the checkout's own: found running, or started, by any number of processes at once.

A server's port and password are noted in one private file. Whether it lives is asked of the
server itself, with that password, so neither a reused process id nor a stranger on its port
passes for it.
"""

import fcntl
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from broker_project.local.files import locked, open_private, read_json, write_json
from broker_project.local.ports import free_port


class ServicesUnavailableError(RuntimeError):
    """An embedded server does not run on this machine; the message says what to do instead."""

    def __init__(self, name: str, cause: str) -> None:
        super().__init__(
            f"The embedded {name} does not run here: {cause}\n"
            "Use servers of your own instead: `docker compose up -d postgres valkey` starts both\n"
            "(compose.yaml). Then set\n"
            "  DATABASE_URL=postgres://broker:broker@127.0.0.1:5432/broker\n"
            "  REDIS_URL=redis://127.0.0.1:6379/0"
        )


@dataclass(frozen=True)
class Address:
    """Where one server listens, and the password it asks for."""

    port: int
    password: str


class Server(Protocol):
    """One kind of embedded server over its folder."""

    name: str
    setting: str

    def url(self, address: Address) -> str:
        """The value for ``setting``."""
        ...

    def answers(self, address: Address) -> bool:
        """Whether this very server is up."""
        ...

    def start(self, address: Address) -> None:
        """Start it and return when it answers; ServicesUnavailableError if it does not."""
        ...

    def stop(self, address: Address) -> None:
        """Stop it and return when it is gone."""
        ...


class Servers:
    """The servers of one data folder."""

    def __init__(self, folder: Path, servers: list[Server]) -> None:
        self._folder = folder
        self._servers = servers
        self._in_use: IO[str] | None = None

    def provide(self) -> dict[str, str]:
        """Have every server running; their URLs by setting. This process counts as a user."""
        self._enter()
        with locked(self._folder / "services.lock"):
            return {server.setting: self._provide(server) for server in self._servers}

    def stop(self, *, even_if_used: bool = False) -> list[str]:
        """Stop what runs, unless another process uses it; the names of what was stopped."""
        if not self._folder.exists():
            return []
        with locked(self._folder / "services.lock"), self._users() as users:
            if not even_if_used and not _alone(users):
                return []
            return [server.name for server in self._servers if self._stop(server)]

    def _enter(self) -> None:
        if self._in_use is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._in_use = self._users()
            fcntl.flock(self._in_use, fcntl.LOCK_SH)

    def leave(self) -> None:
        """This process no longer counts as a user."""
        if self._in_use is not None:
            self._in_use.close()
            self._in_use = None

    def _users(self) -> IO[str]:
        return open_private(self._folder / "services.users")

    def _provide(self, server: Server) -> str:
        address = self._address(server)
        if address is None or not server.answers(address):
            address = _next_address(address)
            self._note(server, address)
            server.start(address)
        return server.url(address)

    def _stop(self, server: Server) -> bool:
        address = self._address(server)
        if address is None or not server.answers(address):
            return False
        server.stop(address)
        return True

    def _address(self, server: Server) -> Address | None:
        noted = read_json(self._folder / "services.json").get(server.name)
        return Address(**noted) if noted else None

    def _note(self, server: Server, address: Address) -> None:
        path = self._folder / "services.json"
        write_json(path, {**read_json(path), server.name: vars(address)})


def _alone(users: IO[str]) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _next_address(last: Address | None) -> Address:
    """The address it had, so that URLs in use stay good; another port if that one is taken."""
    if last is None:
        return Address(free_port(), secrets.token_hex(16))
    return Address(free_port(last.port), last.password)
