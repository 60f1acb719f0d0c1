"""LangGraph's agent in one process, in memory: nothing of it survives the process.

    python benchmarks/langgraph_loop.py URL --runs 2000 --slots 1000

Runs in the environment that ``runs.py --langgraph`` makes; prints one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import conversation
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent


async def measured(url: str, *, runs: int, slots: int) -> dict[str, float]:
    """Seconds and CPU seconds of all runs, and the most memory, in megabytes."""
    model = ChatOpenAI(model="bench", base_url=url, api_key="none", max_retries=0)
    tools = [StructuredTool.from_function(each) for each in conversation.PLAIN_TOOLS.values()]
    agent = create_react_agent(model, tools)
    places = asyncio.Semaphore(slots)

    async def run() -> None:
        async with places:
            ended = await agent.ainvoke({"messages": conversation.MESSAGES})
            if ended["messages"][-1].content != conversation.ANSWER:
                raise RuntimeError("a run has not ended with the answer")

    await run()
    began, cpu = time.monotonic(), time.process_time()
    await asyncio.gather(*(run() for _ in range(runs)))
    return {
        "seconds": time.monotonic() - began,
        "cpu": time.process_time() - cpu,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--slots", type=int, default=100)
    asked = parser.parse_args()
    print(json.dumps(asyncio.run(measured(asked.url, runs=asked.runs, slots=asked.slots))))
