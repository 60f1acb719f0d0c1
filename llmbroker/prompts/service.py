"""Whatever has ``chat``, seen from async code."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from llmbroker.models import Message, ToolSchema
from llmbroker.tools.signature import is_coroutine_function
from llmbroker.tools.workers import run_in_thread


class Service:
    """A broker, a scoped caller, a direct client, blocking or not, as one kind of thing."""

    def __init__(self, caller: Any) -> None:
        """Raises TypeError for what has no ``chat``."""
        chat = getattr(caller, "chat", None)
        if not callable(chat):
            raise TypeError(
                f"a service has chat(messages, tools=…), as a Broker has; got {caller!r}"
            )
        scope = getattr(caller, "scope", None)
        self.scope = scope if isinstance(scope, str) else None
        self.is_async = is_coroutine_function(chat)
        self.names_operations = "operation" in inspect.signature(chat).parameters
        self._chat = chat

    async def chat(
        self, messages: list[Message], *, tools: list[ToolSchema] | None = None, **options: Any
    ) -> Any:
        """One call of a model. A blocking ``chat`` runs in a thread."""
        work = functools.partial(self._chat, messages, tools=tools, **options)
        if self.is_async:
            return await work()
        reply = await run_in_thread(work)
        return await reply if inspect.isawaitable(reply) else reply
