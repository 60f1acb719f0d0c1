"""Run a command with the services and secrets of a local trial, and stop what it alone used.

python -m broker_project.local.run [--nearby] COMMAND …
"""

import os
import signal
import subprocess
import sys
from types import FrameType

from broker_project.local.embedded import ServicesUnavailableError
from broker_project.local.nearby import settings_nearby
from broker_project.local.services import services

USAGE = "usage: python -m broker_project.local.run [--nearby] COMMAND [ARGUMENT …]\n"


def main(arguments: list[str]) -> int:
    """The command's exit status."""
    if arguments[:1] == ["--nearby"]:
        arguments = arguments[1:]
        _use_servers_nearby()
    if not arguments:
        sys.stderr.write(USAGE)
        return 2
    os.environ["BROKER_LOCAL"] = "1"
    try:
        with services():
            return _run(arguments)
    except ServicesUnavailableError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _use_servers_nearby() -> None:
    for name, value in settings_nearby().items():
        if not os.environ.get(name):
            os.environ[name] = value
            sys.stderr.write(f"{name}={value} (found on its usual port)\n")


def _run(command: list[str]) -> int:
    with subprocess.Popen(command) as process:  # noqa: S603 - what our own Makefile asks for

        def forward(number: int, _frame: FrameType | None) -> None:
            # Ctrl-C reaches the child by itself: it is in the same group. Here one only waits.
            if number != signal.SIGINT:
                process.send_signal(number)

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, forward)
        status = process.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
