"""docs/routing.md tells what the program does, not what it once did."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import llmbroker
from llmbroker.broker import HEDGE_AFTER
from llmbroker.models import CallStatus
from llmbroker.routing.call import MAX_ATTEMPTS, PATIENCE
from llmbroker.routing.health import MAX_COOLDOWN
from llmbroker.routing.router import PROBE_LEASE, RETURNS_PER_SECOND
from llmbroker.routing.trust import TRUST_FOR
from llmbroker.routing.verdict_table import as_markdown

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "routing.md").read_text("utf-8")
TEXT = re.sub(r"\s+", " ", PAGE)
LIMITS = llmbroker.Timeouts()


def test_the_table_is_the_program_s_own() -> None:
    shown = re.search(r"<!-- verdicts -->\n(.*?)\n<!-- /verdicts -->", PAGE, re.DOTALL)

    assert shown is not None
    assert shown[1] == as_markdown()


@pytest.mark.parametrize(
    "sentence",
    [
        f"at most {MAX_ATTEMPTS} requests",
        f"up to {MAX_COOLDOWN:g} s",
        f"by itself after {PROBE_LEASE:g} s",
        f"has not answered in this process for {TRUST_FOR:g} s",
        f"waits up to {PATIENCE:g} s",
        f"{RETURNS_PER_SECOND} in a second",
        f"`hedge_after` ({HEDGE_AFTER:g} s",
        f"`connect` ({LIMITS.connect:g} s)",
        f"`first_token` ({LIMITS.first_token:g} s",
        f"`stall` ({LIMITS.stall:g} s",
        f"`answer` ({LIMITS.answer:g} s",
    ],
)
def test_its_numbers_are_the_program_s(sentence: str) -> None:
    assert sentence in TEXT


@pytest.mark.parametrize("status", CallStatus)
def test_every_status_is_explained(status: CallStatus) -> None:
    assert f"`{status.value}`" in PAGE


def test_the_table_prints_itself_without_a_warning() -> None:
    command = [sys.executable, "-W", "error", "-m", "llmbroker.routing.verdict_table"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == (f"{as_markdown()}\n", "")
