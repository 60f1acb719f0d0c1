"""The processes of a trial: started together, watched, and stopped with their children."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Self

from broker_project.local.paths import ROOT, tail

STOP_SECONDS = 10.0
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class EndedError(Exception):
    """A process ended that should not have; the message holds the end of its log."""


@dataclass
class Part:
    """One process; without a log it writes to our terminal."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path | None

    def check(self) -> None:
        """Raise EndedError if it has ended."""
        status = self.process.poll()
        if status is None:
            return
        seen = f" The end of {self.log}:\n{tail(self.log)}" if self.log else ""
        raise EndedError(f"The {self.name} ended by itself (status {status}).{seen}")


class Processes:
    """A context: whatever was started in it is gone when it ends."""

    def __init__(self) -> None:
        self._parts: list[Part] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def start(self, name: str, arguments: Sequence[str], log: Path | None = None) -> Part:
        """Start ``python ARGUMENTS`` in a group of its own: Ctrl-C is ours to pass on."""
        command = [sys.executable, *arguments]
        with open(log or os.devnull, "ab") as output:  # noqa: PTH123 - devnull is no Path
            process = subprocess.Popen(  # noqa: S603 - our own modules
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output if log else None,
                stderr=output if log else None,
                start_new_session=True,
            )
        part = Part(name, process, log)
        self._parts.append(part)
        return part

    def check(self) -> None:
        """Raise EndedError if one has ended."""
        for part in self._parts:
            part.check()

    def wait_until(self, ready: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
        """Poll until it is ready; TimeoutError if it is not in time."""
        deadline = time.monotonic() + seconds
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} was not ready within {seconds:.0f} s.")
            time.sleep(0.1)

    def stop(self) -> None:
        """End all, the last started first; those that do not listen are killed."""
        for part in reversed(self._parts):
            _signal(part, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        for part in reversed(self._parts):
            with suppress(subprocess.TimeoutExpired):
                part.process.wait(max(0.1, deadline - time.monotonic()))
            _signal(part, signal.SIGKILL)
            part.process.wait()
        self._parts.clear()


def _signal(part: Part, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(part.process.pid, number)


@contextmanager
def interruptible() -> Iterator[None]:
    """Make SIGTERM and a closed terminal end the block as Ctrl-C does: by KeyboardInterrupt."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        # Once is enough: what cleans up must not be cut short by an impatient second one.
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
