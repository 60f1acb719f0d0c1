"""Prints the schema that one library makes of each signature, as JSON.

Run by schemas_compare.py in that library's own environment.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from signatures import SIGNATURES

Made = dict[str, Any]


def ours(function: Callable[..., Any]) -> Made:
    """llmbroker's."""
    import llmbroker

    return llmbroker.Function.of(function).schema["function"]


def ours_strict(function: Callable[..., Any]) -> Made:
    """llmbroker's where ``strict=True`` is declared."""
    import llmbroker

    return llmbroker.Function.of(function, strict=True).schema["function"]


def semantic_kernel(function: Callable[..., Any]) -> Made:
    """Semantic Kernel's, as it goes to OpenAI."""
    from semantic_kernel.connectors.ai.function_calling_utils import (
        kernel_function_metadata_to_function_call_format,
    )
    from semantic_kernel.functions import KernelFunctionFromMethod, kernel_function

    declared = kernel_function(function)
    made = KernelFunctionFromMethod(method=declared, plugin_name="p")
    return kernel_function_metadata_to_function_call_format(made.metadata)["function"]


def openai_agents(function: Callable[..., Any]) -> Made:
    """The OpenAI Agents SDK's, not strict; it is strict by default."""
    from agents import function_tool

    tool = function_tool(function, strict_mode=False)
    return {"description": tool.description, "parameters": tool.params_json_schema}


def openai_agents_strict(function: Callable[..., Any]) -> Made:
    """The OpenAI Agents SDK's default."""
    from agents import function_tool

    tool = function_tool(function)
    return {"description": tool.description, "parameters": tool.params_json_schema}


def pydantic_ai(function: Callable[..., Any]) -> Made:
    """Pydantic AI's."""
    from pydantic_ai import Tool

    tool = Tool(function).tool_def
    return {"description": tool.description, "parameters": tool.parameters_json_schema}


MAKERS = {
    "llmbroker": ours,
    "llmbroker, strict": ours_strict,
    "Semantic Kernel": semantic_kernel,
    "OpenAI Agents": openai_agents,
    "OpenAI Agents, strict": openai_agents_strict,
    "Pydantic AI": pydantic_ai,
}


def main() -> None:
    """Print {name: schema or error}."""
    make = MAKERS[sys.argv[1]]
    print(json.dumps({each.__name__: _tried(make, each) for each in SIGNATURES}))


def _tried(make: Callable[[Callable[..., Any]], Made], function: Callable[..., Any]) -> Made:
    try:
        made = make(function)
    except Exception as error:  # noqa: BLE001 - that it refuses is what we want to know
        return {"error": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
    return {key: made[key] for key in ("description", "parameters") if key in made}


if __name__ == "__main__":
    main()
