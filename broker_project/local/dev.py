"""`make dev`: the web server with reload and a worker, in this terminal, until Ctrl-C."""

import os
import sys
import time

from broker_project.local import parts
from broker_project.local.demo_tenant import CommandError, run_command
from broker_project.local.embedded import ServicesUnavailableError
from broker_project.local.ports import PortError, port_by
from broker_project.local.processes import EndedError, Processes, interruptible
from broker_project.local.services import services


def main() -> int:
    """The exit status."""
    os.environ["BROKER_LOCAL"] = "1"
    os.environ.setdefault("BROKER_ALLOW_PRIVATE_ADDRESSES", "1")  # the model may run nearby
    os.environ.setdefault("DEBUG", "1")
    try:
        with interruptible(), services(), Processes() as processes:
            run_command("migrate", "--no-input")
            port = port_by("DEV_PORT")
            processes.start("web server", parts.web(port, reload=True))
            processes.start("worker", parts.worker())
            while True:
                processes.check()
                time.sleep(0.5)
    except (CommandError, EndedError, PortError, ServicesUnavailableError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
