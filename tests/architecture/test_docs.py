"""The pages name files, tests and commands that are there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
QUOTED = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w./-]+/[\w.-]*\.(?:py|md|toml|html|yaml)|[a-z_]+\.py|(?:[a-z_0-9]+/)+")


@pytest.fixture(scope="module")
def files() -> list[str]:
    """What git knows, and what is new."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return subprocess.check_output(listed, cwd=ROOT, text=True).split()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_is_there(page: Path, files: list[str]) -> None:
    quoted = QUOTED.findall(page.read_text("utf-8"))
    named = {name for text in quoted for name in text.split("::")[:1] if PATH.fullmatch(name)}

    missing = {
        name
        for name in named
        if not name.startswith(".data/")
        and not any(f"/{file}".endswith(f"/{name}") or f"/{name}" in f"/{file}" for file in files)
    }
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_is_there(page: Path) -> None:
    for path, name in re.findall(r"(tests/[\w/]+\.py)::(\w+)", page.read_text("utf-8")):
        assert f"def {name}(" in (ROOT / path).read_text("utf-8"), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_a_page_names_is_there(page: Path, files: list[str]) -> None:
    ours = {Path(file).stem for file in files if "/management/commands/" in file}
    named = set(re.findall(r"manage\.py (\w+)", page.read_text("utf-8")))

    assert named <= ours | {"check", "migrate"}
