"""Celery workers forked from one process that has imported everything: there in half a second.

with Nursery(**environment) as nursery:
    worker = nursery.start(RUNS_AT_ONCE=1)  # settings of this worker's own
    worker.kill()
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.worker import Worker, services


class Forked:
    """A worker process; everything that it prints is in ``output``."""

    def __init__(self, pid: int, log: Path) -> None:
        self.pid = pid
        self._log = log

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def is_alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait_until_ready(self, timeout: float = 60.0) -> None:
        deadline = time.monotonic() + timeout
        while " ready." not in self.output:
            if not self.is_alive or time.monotonic() > deadline:
                raise RuntimeError(f"the worker is not ready:\n{self.output}")
            time.sleep(0.05)

    def wait_until_gone(self, timeout: float = 30.0) -> bool:
        deadline = time.monotonic() + timeout
        while self.is_alive and time.monotonic() < deadline:
            time.sleep(0.05)
        return not self.is_alive


class Nursery:
    """The process that workers are forked from; those that are left at the end are stopped."""

    def __init__(self, **environment: str) -> None:
        self._environment = {**os.environ, **services(), **environment}
        self._workers: list[Forked] = []

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        command = [sys.executable, "-m", "tests.support.nursery"]
        self._parent = Worker(command, self._environment)
        self._parent.wait_until_ready()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop_all()
        self._parent.stop()
        self._folder.cleanup()

    def stop_all(self) -> None:
        """Stop the workers that are still there, also those that are paused."""
        for worker in self._workers:
            worker.signal(signal.SIGCONT)
            worker.signal(signal.SIGTERM)
        for worker in self._workers:
            if not worker.wait_until_gone():
                worker.signal(signal.SIGKILL)

    def start(self, *options: str, **settings: Any) -> Forked:
        """A worker with these settings, and further arguments of its command line; on its way."""
        number = len(self._workers)
        log = Path(self._folder.name) / f"{number}.log"
        log.touch()
        spool = str(Path(self._folder.name) / f"spool-{number}")
        order = {
            "log": str(log),
            "name": f"forked-{os.getpid()}-{number}@%h",
            "options": options,
            "settings": {"JOURNAL_SPOOL_DIR": spool, **settings},
        }
        before = len(self._parent.lines)
        assert self._parent.process.stdin is not None
        self._parent.process.stdin.write(json.dumps(order) + "\n")
        self._parent.process.stdin.flush()
        deadline = time.monotonic() + 10
        while len(self._parent.lines) == before:
            assert time.monotonic() < deadline, "the nursery is gone"
            time.sleep(0.005)
        self._workers.append(Forked(int(self._parent.lines[before]), log))
        return self._workers[-1]


def main() -> None:
    """Fork a worker for every line of the standard input."""
    from agents.tool_registry import installed_tools
    from broker_project.celery import app

    app.loader.import_default_modules()
    installed_tools()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    _say("The nursery is ready.")
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _work(order)
            os._exit(0)
        _say(str(pid))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _work(order: dict[str, Any]) -> None:
    from django.conf import settings

    from broker_project.celery import app

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    log = os.open(order["log"], os.O_WRONLY | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    for name, value in order["settings"].items():
        setattr(settings, name, value)
    usual = ["-P", "threads", "-c", "2", "-l", "INFO", "--without-gossip", "--without-mingle"]
    app.worker_main(["worker", "-n", order["name"], *usual, *order["options"]])


if __name__ == "__main__":
    main()
