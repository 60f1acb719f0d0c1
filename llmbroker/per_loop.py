"""One resource per event loop: connections can move neither to another loop nor over a fork."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from typing import Generic, TypeVar

Resource = TypeVar("Resource")

# Resources of a process that forked us. Their sockets and poller are shared with it, so that
# even closing them would disturb it; they are kept, and left alone.
_ABANDONED: list[object] = []


class PerLoop(Generic[Resource]):
    """Opens on first use in each loop, and closes with that loop or by ``aclose``.

    ``open_`` is an async generator that yields the resource once and closes it afterwards. An
    event loop finishes the generators it has started before it ends
    (``loop.shutdown_asyncgens``, which ``asyncio.run`` calls), and so what they hold.
    """

    def __init__(self, open_: Callable[[], AsyncGenerator[Resource, None]]) -> None:
        self._open = open_
        self._home: tuple[int, asyncio.AbstractEventLoop] | None = None
        self._life: AsyncGenerator[Resource, None] | None = None
        self._resource: Resource

    async def get(self) -> Resource:
        """The resource of this process's running loop."""
        home = (os.getpid(), asyncio.get_running_loop())
        if home != self._home:
            if self._life is not None and self._life.ag_frame is not None:  # type: ignore[attr-defined]
                _ABANDONED.append(self._life)
            self._life = self._open()
            self._resource = await anext(self._life)
            self._home = home
        return self._resource

    async def aclose(self) -> None:
        """Close the resource of the running loop; a later ``get`` opens another."""
        life, self._life, self._home = self._life, None, None
        if life is not None:
            await life.aclose()
