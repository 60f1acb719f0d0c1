"""A pytest plugin: each process of a parallel run has a Redis database of its own.

Otherwise they would ring each other's bells. PostgreSQL is pytest-django's to divide.
"""

import os
import re

DATABASES = 16


def own_database(url: str, worker: str) -> str:
    """``url`` with another database number for each of pytest-xdist's workers (gw0, gw1, …)."""
    apart = int(worker.removeprefix("gw")) + 1
    base, number = re.fullmatch(r"(.*?)(?:/(\d*))?", url).groups()
    return f"{base}/{(int(number or 0) - apart) % DATABASES}"


if "PYTEST_XDIST_WORKER" in os.environ and os.environ.get("REDIS_URL"):
    os.environ["REDIS_URL"] = own_database(
        os.environ["REDIS_URL"], os.environ["PYTEST_XDIST_WORKER"]
    )
