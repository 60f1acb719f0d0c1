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


def effect(tool: str, context: ToolContext, seconds: float) -> str:
    """Leave a line, and take ``seconds`` more."""
    line = json.dumps([tool, context.run_id, context.idempotency_key]) + "\n"
    with Path(os.environ["CHAOS_LOG"]).open("a") as log:
        log.write(line)
    time.sleep(seconds)
    return f"{tool} done"


@function(effect="pure")
def look(context: ToolContext) -> str:
    return effect("look", context, 0.05)


@function(effect="idempotent")
def put(context: ToolContext) -> str:
    return effect("put", context, 0.3)


@function(effect="once")
def pay(context: ToolContext) -> str:
    return effect("pay", context, 0.1)


TOOLS = (look, put, pay)

_skew = float(os.environ.get("CHAOS_SKEW", "0"))
if _skew:
    _time, _now = time.time, timezone.now
    time.time = lambda: _time() + _skew
    timezone.now = lambda: _now() + timedelta(seconds=_skew)
