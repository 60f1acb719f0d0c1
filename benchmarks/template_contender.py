"""Renders one template many times in this process, and prints what it cost as JSON.

    python template_contender.py ours|semantic_kernel plain|coroutine

CPU is the whole process's, all threads, without import and warm-up.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
from collections.abc import Awaitable, Callable

WARM_UP = 50
TEMPLATE = "Report for {{$name}}.\n" + "\n".join(
    f"{number}. {{{{tools.add $base step='{number}'}}}} and {{{{$name}}}}" for number in range(10)
)
VARIABLES = {"name": "Ann & Bob", "base": 100}
EXPECTED = "Report for Ann & Bob.\n" + "\n".join(
    f"{number}. {100 + number} and Ann & Bob" for number in range(10)
)

Render = Callable[[], Awaitable[str]]


def ours(kind: str) -> Render:
    """A Kernel's render."""
    import llmbroker

    kernel = llmbroker.Kernel()
    kernel.add_function("tools", FUNCTIONS[kind], function_name="add")
    prompt = kernel.add_function("p", function_name="report", prompt=TEMPLATE)

    async def render() -> str:
        return str(await kernel.render(prompt, VARIABLES))

    return render


def semantic_kernel(kind: str) -> Render:
    """Semantic Kernel's render, without its HTML escapes, so that the texts are the same."""
    import semantic_kernel as sk
    from semantic_kernel.functions import KernelArguments, kernel_function
    from semantic_kernel.prompt_template import KernelPromptTemplate, PromptTemplateConfig

    kernel = sk.Kernel()
    function = kernel_function(name="add")(FUNCTIONS[kind])
    kernel.add_function(plugin_name="tools", function=function)
    config = PromptTemplateConfig(template=TEMPLATE, allow_dangerously_set_content=True)
    template = KernelPromptTemplate(
        prompt_template_config=config, allow_dangerously_set_content=True
    )

    async def render() -> str:
        return await template.render(kernel, KernelArguments(**VARIABLES))

    return render


def add(base: int, step: int = 0) -> int:
    """Adds."""
    return base + step


async def add_later(base: int, step: int = 0) -> int:
    """Adds."""
    return base + step


FUNCTIONS: dict[str, Callable[..., object]] = {"plain": add, "coroutine": add_later}
CONTENDERS: dict[str, Callable[[str], Render]] = {
    "ours": ours,
    "semantic_kernel": semantic_kernel,
}


async def measure(render: Render, count: int) -> float:
    """Milliseconds of CPU per render."""
    for _ in range(WARM_UP):
        if (text := await render()) != EXPECTED:
            raise SystemExit(f"rendered something else: {text!r}")
    before = cpu()
    for _ in range(count):
        await render()
    return (cpu() - before) / count * 1000


def cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure the contender that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contender", choices=CONTENDERS)
    parser.add_argument("kind", choices=FUNCTIONS)
    parser.add_argument("--count", type=int, default=500)
    args = parser.parse_args()
    render = CONTENDERS[args.contender](args.kind)
    print(json.dumps({"cpu_ms": asyncio.run(measure(render, args.count))}))


if __name__ == "__main__":
    main()
