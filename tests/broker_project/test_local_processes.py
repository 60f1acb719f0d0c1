"""Processes of a trial: none outlives it, and one that dies is reported with its log."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from broker_project.local.ports import free_port
from broker_project.local.processes import EndedError, Processes

ROOT = Path(__file__).resolve().parents[2]
WITH_CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(60)
"""


def wait_for(log: Path, text: str = "\n") -> str:
    deadline = time.monotonic() + 10
    while text not in (written := log.read_text() if log.exists() else ""):
        assert time.monotonic() < deadline, written
        time.sleep(0.02)
    return written


def lives(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def ends(pid: int) -> bool:
    """Whether the process ends; one that was killed may take a moment on a busy machine."""
    deadline = time.monotonic() + 10
    while lives(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_what_was_started_is_gone_afterwards_with_its_children(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Processes() as processes:
        part = processes.start("parent", ["-c", WITH_CHILD], log)
        child = int(wait_for(log))
        assert lives(child)

    assert part.process.returncode == -signal.SIGTERM
    assert ends(child)


def test_one_that_ignores_the_request_to_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker_project.local.processes.STOP_SECONDS", 0.2)
    with Processes() as processes:
        part = processes.start("deaf", ["-c", DEAF], tmp_path / "log")
        wait_for(tmp_path / "log", "deaf")

    assert part.process.returncode == -signal.SIGKILL


def test_one_that_dies_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    code = "print('one'); raise SystemExit('no such table')"
    with Processes() as processes:
        part = processes.start("worker", ["-c", code], tmp_path / "worker.log")
        part.process.wait(10)
        with pytest.raises(EndedError, match=r"(?s)worker ended .*status 1.*no such table"):
            processes.check()


def test_waiting_for_one_that_died_does_not_last(tmp_path: Path) -> None:
    with Processes() as processes:
        processes.start("web server", ["-c", "raise SystemExit(3)"], tmp_path / "web.log")
        with pytest.raises(EndedError, match="web server ended by itself"):
            processes.wait_until(lambda: False, "The web server")


def test_waiting_has_an_end(tmp_path: Path) -> None:
    with Processes() as processes:
        processes.start("web server", ["-c", "import time; time.sleep(60)"], tmp_path / "log")
        with pytest.raises(TimeoutError, match="web server was not ready"):
            processes.wait_until(lambda: False, "The web server", seconds=0.2)


INTERRUPTED = """
import os, signal, time
from broker_project.local.processes import Processes, interruptible
try:
    with interruptible(), Processes() as processes:
        part = processes.start("sleeper", ["-c", "import time; time.sleep(60)"])
        print(part.process.pid, flush=True)
        time.sleep(60)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_way_of_being_ended_stops_the_parts(number: signal.Signals) -> None:
    command = [sys.executable, "-c", INTERRUPTED]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE) as process:
        assert process.stdout
        part = int(process.stdout.readline())
        process.send_signal(number)
        process.send_signal(number)
        assert process.communicate(timeout=20)[0] == "stopped\n"

    assert not lives(part)


def test_the_preferred_port_is_taken_if_it_is_free() -> None:
    port = free_port()

    assert free_port(port) == port


class TestRun:
    """`python -m broker_project.local.run`."""

    elsewhere = ("DATABASE_URL=postgres://x/y", "REDIS_URL=redis://x")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["env", *self.elsewhere, sys.executable, "-m", "broker_project.local.run", *command],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def test_the_command_gets_the_settings_and_its_status_is_passed_on(self) -> None:
        code = "import os; print(os.environ['BROKER_LOCAL'], os.environ['DATABASE_URL']); exit(7)"
        result = self.run(sys.executable, "-c", code)

        assert result.stdout == "1 postgres://x/y\n"
        assert result.returncode == 7

    def test_a_command_that_was_killed_is_no_success(self) -> None:
        code = f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})"

        assert self.run(sys.executable, "-c", code).returncode == 128 + signal.SIGKILL

    def test_servers_that_are_named_are_not_replaced_by_ones_nearby(self) -> None:
        result = self.run("--nearby", sys.executable, "-c", "")

        assert (result.returncode, result.stderr) == (0, "")

    def test_without_a_command_it_says_how_to_use_it(self) -> None:
        result = self.run()

        assert result.returncode == 2
        assert "usage:" in result.stderr

    def test_being_ended_it_ends_the_command(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        code = (
            f"import time; open({str(log)!r}, 'w').write(str(__import__('os').getpid())+chr(10));"
        )
        command = [
            *(sys.executable, "-m", "broker_project.local.run"),
            *(sys.executable, "-c", f"{code} time.sleep(60)"),
        ]
        settings = dict(setting.split("=", 1) for setting in self.elsewhere)
        with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **settings}) as process:
            pid = int(wait_for(log))
            process.terminate()
            assert process.wait(20) == 128 + signal.SIGTERM

        assert not lives(pid)
