"""The parts of a running product, as arguments to Python."""

from pathlib import Path

from broker_project.local.paths import data_dir
from broker_project.local.ports import HOST

# Only these are watched: a reload that also watched .venv would keep a core busy.
RELOADED = ("llmbroker", "tenants", "journal", "agents", "broker_project")


def web(port: int, *, reload: bool = False) -> list[str]:
    """The web server."""
    watched = [part for folder in RELOADED for part in ("--reload-dir", folder)]
    return [
        *("-m", "uvicorn", "broker_project.asgi:application"),
        *("--host", HOST, "--port", str(port)),
        # Event streams last as long as their runs: a stop does not wait for them.
        *("--timeout-graceful-shutdown", "3"),
        *(("--reload", *watched) if reload else ()),
    ]


def worker() -> list[str]:
    """One worker with the beat that sweeps up lost runs."""
    schedule: Path = data_dir() / "celerybeat-schedule"
    return [
        *("-m", "celery", "-A", "broker_project", "worker"),
        *("-P", "threads", "-c", "8", "-B", "--schedule", str(schedule)),
        *("--loglevel", "INFO", "--without-mingle", "--without-gossip"),
    ]


def practice_model(port: int) -> list[str]:
    """The stand-in for a language model."""
    return ["-m", "broker_project.local.practice_model", "--port", str(port)]


def manage(*arguments: str) -> list[str]:
    """A command of Django's."""
    return ["manage.py", *arguments]
