"""Tools whose effects outlive their process, for workers that are killed; and a wrong clock.

CHAOS_LOG is the file to which each effect is a line; CHAOS_SKEW is in seconds.
"""

import json
import os
import time
from datetime import timedelta
from pathlib import Path

from django.utils import timezone

from llmbroker import ToolContext, function

PLUGIN = "chaos"


def _effect(tool: str, context: ToolContext) -> str:
    line = json.dumps([tool, context.run_id, context.idempotency_key]) + "\n"
    with Path(os.environ["CHAOS_LOG"]).open("a") as log:
        log.write(line)
    time.sleep(0.1)
    return f"{tool} done"


@function(effect="pure")
def look(context: ToolContext) -> str:
    return _effect("look", context)


@function(effect="idempotent")
def put(context: ToolContext) -> str:
    return _effect("put", context)


@function(effect="once")
def pay(context: ToolContext) -> str:
    return _effect("pay", context)


TOOLS = (look, put, pay)

_skew = float(os.environ.get("CHAOS_SKEW", "0"))
if _skew:
    _time, _now = time.time, timezone.now
    time.time = lambda: _time() + _skew
    timezone.now = lambda: _now() + timedelta(seconds=_skew)
