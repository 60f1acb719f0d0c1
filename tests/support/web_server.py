"""The project's ASGI application behind a real server, in a thread of the test's process."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from tenants.handover import Application, StreamHandover


@contextmanager
def serving(django: Application | None = None) -> Iterator[str]:
    """The base URL of the server, for as long as the block runs; ``django`` made anew if given."""
    from broker_project.asgi import application

    if django is not None:
        application = StreamHandover(django)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        application, log_config=None, lifespan="off", timeout_graceful_shutdown=1, access_log=False
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 10
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(15)
        listening.close()
