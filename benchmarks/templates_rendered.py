"""Renders all of template_cases with one library, and prints what each became as JSON.

    python templates_rendered.py ours|semantic_kernel

A template became a list of [role, text], or the text of an error.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from typing import Any

from template_cases import CASES, FUNCTIONS, Case

Outcome = list[list[str]] | str


async def ours(case: Case) -> Outcome:
    """What a Kernel would send."""
    import llmbroker

    kernel = llmbroker.Kernel()
    kernel.add_plugin(FUNCTIONS, "f")
    function = kernel.add_function("p", function_name="case", prompt=case.template)
    prompt = await kernel.render(function, case.variables)
    return [[each["role"], each["content"]] for each in prompt.as_chat()]


async def semantic_kernel(case: Case) -> Outcome:
    """What Semantic Kernel would send, set up as it is by default."""
    import semantic_kernel as sk
    from semantic_kernel.contents import ChatHistory
    from semantic_kernel.functions import KernelArguments, kernel_function
    from semantic_kernel.prompt_template import KernelPromptTemplate, PromptTemplateConfig

    kernel = sk.Kernel()
    for name, function in FUNCTIONS.items():
        kernel.add_function(plugin_name="f", function=kernel_function(name=name)(function))
    config = PromptTemplateConfig(template=case.template)
    template = KernelPromptTemplate(prompt_template_config=config)
    text = await template.render(kernel, KernelArguments(**case.variables))
    history = ChatHistory.from_rendered_prompt(text)
    return [[each.role.value, each.content] for each in history.messages]


LIBRARIES = {"ours": ours, "semantic_kernel": semantic_kernel}


async def outcome(library: str, case: Case) -> Outcome:
    """What became of one template."""
    try:
        return await LIBRARIES[library](case)
    except Exception as error:  # noqa: BLE001 - it is what is compared
        return f"{type(error).__name__}: {error}"


async def main(library: str) -> list[Any]:
    """The outcomes of all cases."""
    return [await outcome(library, case) for case in CASES]


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    print(json.dumps(asyncio.run(main(sys.argv[1]))))
