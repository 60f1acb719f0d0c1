"""Environments of their own for contenders: one of them has our package's name."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENT = "llmbroker==1.11.0"


def python(folder: Path, requirements: tuple[str, ...] = (REQUIREMENT,)) -> Path:
    """The interpreter in ``folder`` that imports them; makes the environment if needed."""
    interpreter = folder / "bin" / "python"
    done = folder / f"{' '.join(requirements)}.installed"
    if not done.exists():
        print(f"installing {', '.join(requirements)} into {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        install = [interpreter, "-m", "pip", "install", "--quiet", *requirements]
        subprocess.run(install, check=True)
        done.touch()
    return interpreter
