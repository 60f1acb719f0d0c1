"""The tools of ``chaos_tools`` in a worker that kills itself at a moment that a test has named.

DEATHS is a folder with a file for each run that is to take a worker down, named by its id; in it
is the moment: ``before`` or ``after`` a checkpoint in which a step begins or ends or the run is
left (``after begin pay``, ``before leave as completed``), ``ran`` and a tool's name, or ``asked``,
which is when a file of that name appears. Each happens once: the order is renamed to ``….done``.
With ``pause`` before it the worker is only stopped, until somebody lets it go on.
"""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import Any

from agents.models import Step
from agents.services import ledger
from agents.services.checkpoints import Checkpoint, write_checkpoints
from llmbroker import ToolContext
from tests.support import chaos_tools

PLUGIN = chaos_tools.PLUGIN
TOOLS = chaos_tools.TOOLS


def _die_if(moment: str, run_id: object) -> None:
    order = _order(run_id)
    text = order.read_text() if order.exists() else ""
    if text.removeprefix("pause ") == moment:
        os.utime(order)
        order.rename(order.with_suffix(".done"))
        os.kill(os.getpid(), signal.SIGKILL if text == moment else signal.SIGSTOP)
        time.sleep(0.1)  # other threads may run on for a moment; this one does not


def _die_once_asked(run_id: object) -> None:
    while _order(run_id).exists():
        if _order("asked").exists():
            _die_if("asked", run_id)
        time.sleep(0.01)


def _order(run_id: object) -> Path:
    return Path(os.environ["DEATHS"], str(run_id))


def _what(checkpoint: Checkpoint) -> Iterator[str]:
    for step in checkpoint.steps:
        verb = "begin" if step.status == Step.Status.IN_PROGRESS else "end"
        if step.status != Step.Status.QUEUED:
            yield f"{verb} {step.name or 'model'}"
    if checkpoint.outcome is not None:
        yield f"leave as {checkpoint.outcome.status}"


def _write_mortally(checkpoints: Sequence[Checkpoint]) -> list[Any]:
    happenings = [(what, each.lease.run_id) for each in checkpoints for what in _what(each)]
    for what, run_id in happenings:
        _die_if(f"before {what}", run_id)
    answers = write_checkpoints(checkpoints)
    for what, run_id in happenings:
        _die_if(f"after {what}", run_id)
        Thread(target=_die_once_asked, args=(run_id,), daemon=True).start()
    return answers


def _run_mortally(tool: str, context: ToolContext, seconds: float) -> str:
    said = _effect(tool, context, seconds)
    _die_if(f"ran {tool}", context.run_id)
    return said


_effect = chaos_tools.effect
chaos_tools.effect = _run_mortally
ledger.write_checkpoints = _write_mortally
