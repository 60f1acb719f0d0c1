"""The examples run as they are, against a model that a test plays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.model_server import ModelServer, Reply, Request, ask, say

ROOT = Path(__file__).resolve().parents[3]


def play(request: Request) -> Reply:
    """Wants the date and then a greeting, where it has tools."""
    if "tools" not in request.body:
        return say(f"javob({request.messages[0]['content'].splitlines()[0]})")
    results = [each["content"] for each in request.messages if each["role"] == "tool"]
    wanted = ["sana-bugungi_sana", "matn-salomlashuv"]
    return ask((wanted[len(results)], {})) if len(results) < 2 else say(" / ".join(results))


def test_the_seeds_example_runs_to_its_end(server: ModelServer) -> None:
    server.answer_with(play)
    settings = {"LLMBROKER_BASE_URL": server.base_url, "LLMBROKER_MODEL": "played"}
    done = subprocess.run(
        [sys.executable, "-m", "examples.kernel_seed"],
        cwd=ROOT,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "matn.xulosala: javob(Quyidagi matnni bitta jumlada xulosala:)" in done.stdout
    assert "matn.salomlashuv: javob(Bugun 2" in done.stdout
    assert "plan, turn 1: sana.bugungi_sana({})\nplan, turn 2: matn.salomlashuv({})" in done.stdout
    assert " / javob(Bugun 2" in done.stdout.splitlines()[-1]
