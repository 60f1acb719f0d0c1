"""What a native function may ask for: the kernel, and the context of its call."""

from __future__ import annotations

import pytest

import llmbroker
from llmbroker import Kernel, ToolContext
from tests.llmbroker.prompts.conftest import prompt, rendered


def test_a_native_function_may_ask_for_the_kernel_and_invoke_prompts(kernel: Kernel) -> None:
    kernel.add_function("matn", function_name="short", prompt="Short: {{$input}}")

    def both(text: str, kernel: Kernel) -> str:
        """Twice."""
        return f"{kernel.invoke_sync('matn.short', input=text)}!"

    async def both_async(text: str, k: llmbroker.Kernel | None = None) -> str:
        assert k is not None
        return f"{await k.invoke('matn.short', input=text)}!"

    kernel.add_plugin({"both": both, "both_async": both_async}, "p")
    assert list(kernel.functions["p.both"].parameters) == ["text"]
    assert list(kernel.functions["p.both_async"].parameters) == ["text"]
    assert kernel.functions["p.both"].function.description == "Twice."
    assert rendered(kernel, "{{p.both 'x'}} {{p.both_async 'y'}}") == "<Short: x>! <Short: y>!"


def test_a_function_that_was_declared_elsewhere_cannot_ask_for_the_kernel(kernel: Kernel) -> None:
    @llmbroker.function
    def odd(kernel: Kernel) -> str:
        return "x"

    with pytest.raises(ValueError, match="declare it by @kernel_function"):
        kernel.add_function("p", odd)


def test_a_native_function_may_ask_in_whose_name_it_runs(kernel: Kernel) -> None:
    def whose(context: ToolContext) -> str | None:
        return context.scope

    kernel.add_function("p", whose)
    assert rendered(kernel, "{{p.whose}}") == "ann"


def test_what_a_prompt_tool_calls_has_idempotency_keys_of_its_own(kernel: Kernel) -> None:
    seen: list[ToolContext] = []

    def note(context: ToolContext) -> None:
        seen.append(context)

    kernel.add_function("p", note)
    function = prompt(kernel, "{{p.note}}{{p.note}}").function
    context = ToolContext(run_id="r", scope="bo", tool_call_id="c", idempotency_key="r:c")
    assert function.call({}, context) == "<>"
    assert [(each.run_id, each.scope, each.tool_call_id) for each in seen] == [("r", "bo", "c")] * 2
    assert [each.idempotency_key for each in seen] == ["r:c:matn.x:0", "r:c:matn.x:1"]
