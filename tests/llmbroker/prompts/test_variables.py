"""Prompts that declare their variables, and prompts that do not."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

import pytest

from llmbroker import BadArgumentsError, Kernel, PromptTemplate, PromptVariable, TemplateRenderError
from tests.llmbroker.prompts.conftest import Sana, prompt, rendered


def test_declared_variables_are_converted_and_filled_in(kernel: Kernel) -> None:
    function = prompt(
        kernel,
        "{{$n}} {{$style}} {{$day}}",
        variables={
            "n": int,
            "style": PromptVariable(Literal["short", "long"], "How", default="short"),
            "day": Annotated[date, "When"],
        },
    )
    assert str(kernel.invoke_sync(function, n="7", day="2026-01-05")) == "<7 short 2026-01-05>"
    with pytest.raises(BadArgumentsError, match="style"):
        kernel.invoke_sync(function, n=1, style="odd", day="2026-01-05")
    with pytest.raises(BadArgumentsError, match="day"):
        kernel.invoke_sync(function, n=1)
    with pytest.raises(BadArgumentsError, match="m"):
        kernel.invoke_sync(function, n=1, day="2026-01-05", m=2)
    parameters = function.function.parameters
    assert parameters["required"] == ["n", "day"]
    assert parameters["properties"]["style"] == {
        "type": "string",
        "enum": ["short", "long"],
        "description": "How",
        "default": "short",
    }


def test_variables_may_be_declared_as_json_schema(kernel: Kernel) -> None:
    function = prompt(
        kernel,
        "{{$n}} {{$style}}",
        variables={"n": {"type": "integer"}, "style": {"type": "string", "default": "short"}},
    )
    assert function.function.parameters["required"] == ["n"]
    assert str(kernel.invoke_sync(function, n="7")) == "<7 short>"
    with pytest.raises(BadArgumentsError, match="n"):
        kernel.invoke_sync(function, n="seven")


def test_a_template_uses_no_variable_that_is_not_declared(kernel: Kernel) -> None:
    with pytest.raises(ValueError, match=r"uses \$m, which variables= does not declare"):
        prompt(kernel, "{{$n}} {{$m}}", variables={"n": int})
    with pytest.raises(ValueError, match="not both"):
        prompt(kernel, "x", variables={"n": int, "m": {"type": "string"}})


def test_a_call_of_a_prompt_with_declared_variables_is_checked(kernel: Kernel) -> None:
    kernel.add_function("m", function_name="n", prompt="{{$n}}", variables={"n": int})
    assert rendered(kernel, "{{m.n '7'}} {{m.n}}", n=1, other=2) == "<7> <1>"
    with pytest.raises(TemplateRenderError, match="n"):
        rendered(kernel, "{{m.n 'seven'}}")


def test_a_strict_prompt_asks_for_every_variable_before_anything_runs(kernel: Kernel) -> None:
    plugin = Sana()
    kernel.add_plugin(plugin, "sana")
    with pytest.raises(TemplateRenderError, match=r"no value is given for \$input"):
        kernel.invoke_sync(prompt(kernel, "{{sana.kun}} {{$input}}", strict=True))
    assert plugin.calls == []


def test_a_ready_template_is_a_prompt_too(kernel: Kernel) -> None:
    template = PromptTemplate([{"role": "system", "content": "Be {{$how}}."}])
    kernel.invoke_sync(prompt(kernel, template), how="brief")
    assert kernel.render_sync("matn.x", how="brief").as_chat() == [
        {"role": "system", "content": "Be brief."}
    ]
