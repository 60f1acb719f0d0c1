"""Wrong settings: a process ends with one sentence that names the setting and the remedy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.worker import services

MANAGE = [sys.executable, "manage.py", "check"]
WORKER = [sys.executable, "-m", "celery", "-A", "broker_project", "worker", "-P", "solo"]
ROOT = Path(__file__).resolve().parents[2]
OF_PROVIDERS = {"OPENAI_API_KEY"}
SECRET = "secret-marker-4711"


def started(command: list[str], **settings: str) -> subprocess.CompletedProcess[str]:
    given = {name: value for name, value in settings.items() if value}
    left = {name: value for name, value in os.environ.items() if name not in settings}
    return subprocess.run(
        command,
        env={**left, **given},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("DATABASE_URL", SECRET, "it reads postgres://user:password@host:5432/name"),
        ("REDIS_URL", SECRET, "it reads redis://"),
        ("LOG_LEVEL", "loud", "DEBUG, INFO"),
        ("RUNS_AT_ONCE", "0", "greater than or equal to 1"),
        ("RUNS_AT_ONCE", "many", "Not a valid integer"),
        ("BROKER_ALLOWED_ADDRESSES", "10.0.0.0/99", "neither a host nor a network"),
    ],
)
def test_a_command_ends_with_one_sentence(name: str, value: str, says: str) -> None:
    done = started(MANAGE, **{name: value})

    assert done.returncode == 1
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("Error: ")
    assert name in sentence
    assert says in sentence
    assert SECRET not in sentence


def test_a_worker_does_not_start_either() -> None:
    done = started(WORKER, AGENT_PLUGINS="nosuch.plugin")

    assert done.returncode == 1
    assert "Error: AGENT_PLUGINS names 'nosuch.plugin'" in done.stderr


def test_what_is_asked_at_the_start_keeps_no_connection(db: None) -> None:
    code = (
        "import broker_project.asgi; from django.db import connection;"
        " stats = connection.pool.get_stats();"
        " print(stats['pool_size'], stats['pool_size'] - stats['pool_available'])"
    )

    done = started([sys.executable, "-c", code], **services())

    assert done.stdout == "1 0\n", done.stderr


def test_every_address_may_stand_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "url"
    path.write_text("redis://127.0.0.1:6379/11\n")
    code = "from django.conf import settings; print(settings.CELERY_BROKER_URL)"

    done = started([sys.executable, "-c", code], REDIS_URL="", REDIS_URL_FILE=str(path))

    assert done.stdout == "redis://127.0.0.1:6379/11\n", done.stderr


def test_the_readme_lists_exactly_the_settings_that_are_read() -> None:
    table = re.search(r"\n## Settings\n(.*?)\n## ", (ROOT / "README.md").read_text(), re.DOTALL)
    assert table is not None
    names = [row.split("|")[1] for row in table[1].splitlines() if row.startswith("| `")]
    listed = {name for cell in names for name in re.findall(r"`([A-Z_]+)`", cell)}

    assert listed - OF_PROVIDERS == read_settings()


def read_settings() -> set[str]:
    """The names that the settings and the local trial read, found in their source."""
    settings = (ROOT / "broker_project" / "settings.py").read_text()
    names = set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', settings))
    required = set(re.findall(r'_required\(\s*"([A-Z_]+)"', settings))
    local = (path.read_text() for path in (ROOT / "broker_project" / "local").glob("*.py"))
    reading = (
        r'(?:environ(?:\.get\(|\.setdefault\(|\[)|port_by\()"((?:DEMO|DEV|BROKER)_[A-Z_]+|ONCE)"'
    )
    trial = {name for text in local for name in re.findall(reading, text)}
    return names | required | {f"{name}_FILE" for name in required} | trial
