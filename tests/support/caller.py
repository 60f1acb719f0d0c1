"""A process that calls a model without end, journals it, and can be killed at any moment.

python -m tests.support.caller BASE_URL SCOPE
"""

import asyncio
import sys

import django
from uuid_utils import uuid7

from llmbroker import AsyncBroker, LLMConfig
from llmbroker.memory import InMemoryRegistry

AT_ONCE = 16


async def call_without_end(base_url: str, scope: str) -> None:
    """Each message is its own trace, so that the model server's side can be matched with rows."""
    from journal.adapters import DjangoStore

    registry = InMemoryRegistry([LLMConfig("drill", base_url, "m", "")])
    async with AsyncBroker(registry, store=DjangoStore(), secrets={}) as broker:
        caller = broker.for_scope(scope)

        async def one_after_another() -> None:
            while True:
                trace = str(uuid7())
                await caller.chat([{"role": "user", "content": trace}], trace_id=trace)

        sys.stdout.write("caller ready.\n")
        await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))


if __name__ == "__main__":
    django.setup()
    asyncio.run(call_without_end(*sys.argv[1:]))
