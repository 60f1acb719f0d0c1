"""Stop the embedded servers of this checkout: `python -m broker_project.local.stop`."""

import sys

from broker_project.local.services import stop_services

if __name__ == "__main__":
    stopped = stop_services()
    sys.stdout.write(f"Stopped {' and '.join(stopped)}.\n" if stopped else "Nothing was running.\n")
