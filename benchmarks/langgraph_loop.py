"""LangGraph's agent in one process, without any store: CPU per loop.

PYTHONPATH=<where langgraph and langchain-openai are> python benchmarks/langgraph_loop.py URL
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import conversation
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent

LOOPS, AT_ONCE = 200, 100


async def main(url: str) -> None:
    """Run all loops, and print the CPU of one."""
    model = ChatOpenAI(model="bench", base_url=url, api_key="none")
    tools = [StructuredTool.from_function(each) for each in conversation.PLAIN_TOOLS.values()]
    agent = create_react_agent(model, tools)
    slots = asyncio.Semaphore(AT_ONCE)

    async def loop() -> None:
        async with slots:
            ended = await agent.ainvoke({"messages": conversation.MESSAGES})
            assert ended["messages"][-1].content == conversation.ANSWER

    await loop()
    began = time.process_time()
    await asyncio.gather(*(loop() for _ in range(LOOPS)))
    print(f"langgraph, in memory: {(time.process_time() - began) * 1000 / LOOPS:.2f} ms per loop")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
