"""The other libraries, each in an environment of its own under .data/bench/."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".data" / "bench"

REQUIREMENTS = {
    "Semantic Kernel": "semantic-kernel==1.45.0",
    "OpenAI Agents": "openai-agents==0.24.0",
    "Pydantic AI": "pydantic-ai-slim[openai]==2.68.0",
}


def python_of(library: str) -> Path:
    """The interpreter that imports ``library``; its environment is made if there is none."""
    requirement = REQUIREMENTS[library]
    name = requirement.partition("==")[0].partition("[")[0]
    folder = FOLDER / f"{name}-venv"
    interpreter = folder / "bin" / "python"
    done = folder / f"{requirement}.installed"
    if not done.exists():
        print(f"installing {requirement} into {folder}", file=sys.stderr)
        if not interpreter.exists():
            venv.create(folder, with_pip=True)
        subprocess.run([interpreter, "-m", "pip", "install", "--quiet", requirement], check=True)
        done.touch()
    return interpreter


def run(library: str, script: Path, *arguments: str) -> str:
    """What ``script`` prints when it is run where ``library`` is; ours is where we are."""
    ours = library not in REQUIREMENTS
    interpreter = Path(sys.executable) if ours else python_of(library)
    done = subprocess.run(
        [interpreter, script, *arguments],
        env={"PYTHONPATH": str(ROOT) if ours else "", "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout
