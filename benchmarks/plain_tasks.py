"""The same loop as plain Celery tasks: what runs cost without lease, checkpoint and journal.

    celery -A benchmarks.plain_tasks worker -P threads -c 1000

BENCH_MODEL is the model server's URL; each task that has ended is counted in Redis.
"""

from __future__ import annotations

import os
import threading
from http.client import HTTPConnection
from urllib.parse import urlsplit

import orjson
import redis
from celery import Celery

from benchmarks import conversation

app = Celery("plain", broker=os.environ["REDIS_URL"])
app.conf.task_default_queue = "bench-plain"
app.conf.task_ignore_result = True
app.conf.broker_transport_options = {"max_connections": 2000}

DONE = "bench-plain-done"
_place = threading.local()
_counter = redis.Redis.from_url(os.environ["REDIS_URL"])


@app.task(acks_late=True)
def loop() -> None:
    """Ask the model until it answers, running what it asks for."""
    messages = list(conversation.MESSAGES)
    while True:
        message = _ask(messages)
        messages.append(message)
        calls = message.get("tool_calls")
        if not calls:
            break
        for call in calls:
            arguments = orjson.loads(call["function"]["arguments"])
            result = conversation.PLAIN_TOOLS[call["function"]["name"]](**arguments)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    _counter.incr(DONE)


def _ask(messages: list[dict]) -> dict:
    url = urlsplit(os.environ["BENCH_MODEL"])
    if not hasattr(_place, "line"):
        _place.line = HTTPConnection(url.hostname or "", url.port)
    body = orjson.dumps({"model": "bench", "messages": messages, "tools": conversation.TOOLS})
    headers = {"Content-Type": "application/json"}
    _place.line.request("POST", f"{url.path}/chat/completions", body, headers)
    return orjson.loads(_place.line.getresponse().read())["choices"][0]["message"]
