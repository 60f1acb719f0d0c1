"""A real Celery worker process on the test's own database and Redis.

with running_worker() as worker:
    ...
    worker.kill()  # kill -9, where a test wants that
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from django.conf import settings
from django.db import connection

ROOT = Path(__file__).resolve().parents[2]
READY = (" ready.", "Application startup complete.")


class Worker:
    """A started process; everything that it prints is in `lines`."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self._ready = threading.Event()
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def output(self) -> str:
        return "".join(self.lines)

    def wait_until_ready(self, timeout: float = 180.0) -> None:
        deadline = time.monotonic() + timeout
        while not self._ready.wait(0.1):
            if self.process.poll() is not None:
                raise RuntimeError(f"the worker ended at once:\n{self.output}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"the worker was not ready within {timeout} s:\n{self.output}")

    def kill(self) -> None:
        """As the kernel does when memory runs out: no warning, no goodbye."""
        self.process.kill()
        self.process.wait(10)

    def stop(self, timeout: float = 30.0) -> None:
        """End it as a deploy does; what it is doing is finished first."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        self._reader.join(5)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def _read(self) -> None:
        stdout = self.process.stdout
        if stdout is None:
            return
        for line in stdout:
            self.lines.append(line)
            if any(ready in line for ready in READY):
                self._ready.set()


@contextmanager
def running_worker(
    *, concurrency: int = 4, options: tuple[str, ...] = (), **environment: str
) -> Iterator[Worker]:
    """Start a worker, wait until it takes tasks, and stop it at the end."""
    worker = start_worker(concurrency=concurrency, options=options, **environment)
    try:
        worker.wait_until_ready()
        yield worker
    finally:
        worker.stop()


def start_worker(
    *, concurrency: int = 4, options: tuple[str, ...] = (), **environment: str
) -> Worker:
    """A Celery worker on its way up."""
    command = [
        *(sys.executable, "-m", "celery", "-A", "broker_project", "worker"),
        *("-P", "threads", "-c", str(concurrency), "-l", "INFO", "-n", f"test-{os.getpid()}@%h"),
        *("--without-gossip", "--without-mingle"),
        *options,
    ]
    return Worker(command, {**os.environ, **services(), **environment})


def start_web(port: int, **environment: str) -> Worker:
    """A web server on its way up."""
    command = [
        *(sys.executable, "-m", "uvicorn", "broker_project.asgi:application"),
        *("--port", str(port), "--no-access-log"),
    ]
    return Worker(command, {**os.environ, **services(), **environment})


def services() -> dict[str, str]:
    """The environment that leads another process to this test run's database and Redis."""
    at = connection.settings_dict
    login = quote(at["USER"], safe="")
    if at["PASSWORD"]:
        login += ":" + quote(at["PASSWORD"], safe="")
    host = quote(at["HOST"] or "", safe="")
    port = f":{at['PORT']}" if at["PORT"] else ""
    return {
        "DATABASE_URL": f"postgres://{login}@{host}{port}/{quote(at['NAME'], safe='')}",
        "REDIS_URL": settings.REDIS_URL,
        "SECRET_KEY": settings.SECRET_KEY,
        "BROKER_ENCRYPTION_KEYS": settings.BROKER_ENCRYPTION_KEYS,
        "DJANGO_SETTINGS_MODULE": "broker_project.settings",
        "PYTHONUNBUFFERED": "1",
    }
