"""Templates that call functions: what these get, in which order, and what can go wrong."""

from __future__ import annotations

import asyncio

import pytest

import llmbroker
from llmbroker import Kernel, TemplateLimits, TemplateRenderError
from tests.llmbroker.prompts.conftest import Echo, Reply, Sana, prompt, rendered


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{sana.kun}}", "2026-01-05"),
        ("{{sana.kun '2'}}", "2026-01-07"),
        ("{{sana.kun farq='2'}}", "2026-01-07"),
        ("{{sana.kun $three}}", "2026-01-08"),
        ("{{sana.kun farq=$three}}", "2026-01-08"),
        ("{{sana.kun $nothing}}", "2026-01-05"),
        ("{{sana.hafta_kuni '2026-01-06'}}", "Tuesday"),
        ("{{sana.nol}}", "0"),
    ],
)
def test_arguments_reach_the_parameters_by_place_and_by_name(
    kernel: Kernel, template: str, text: str
) -> None:
    assert rendered(kernel, template, three=3) == text


def test_a_call_gets_the_variables_that_it_has_parameters_for(kernel: Kernel) -> None:
    template = "{{sana.kun}} {{sana.kun farq='3'}} {{sana.kun}} {{$farq}}"
    assert rendered(kernel, template, farq=1, other=2) == "2026-01-06 2026-01-08 2026-01-06 1"


def test_a_variable_is_passed_as_it_is(kernel: Kernel) -> None:
    seen: list[object] = []
    kernel.add_function("p", lambda value, rest=None: seen.append((value, rest)), function_name="f")
    given = ["a", {"b": 1}]
    assert rendered(kernel, "[{{p.f $v rest='<\"&>'}}]", v=given) == "[]"
    assert seen == [(given, '<"&>')]


def test_functions_run_from_left_to_right_before_the_model_is_asked(
    kernel: Kernel, echo: Echo
) -> None:
    plugin = Sana()
    kernel.add_plugin(plugin, "sana")
    kernel.invoke_sync(
        prompt(kernel, "{{sana.kun '1'}} {{sana.hafta_kuni '2026-01-06'}} {{sana.kun '2'}}")
    )
    assert plugin.calls == ["kun 1", "hafta_kuni datetime.date(2026, 1, 6)", "kun 2"]
    assert echo.asked[0][0]["content"] == "2026-01-06 Tuesday 2026-01-07"


def test_a_plain_function_may_give_something_to_await(kernel: Kernel) -> None:
    async def later(text: str) -> str:
        return text.upper()

    kernel.add_function("p", lambda text: later(f"{text}!"), function_name="f")
    assert rendered(kernel, "{{p.f 'a'}}{{p.f 'b'}}") == "A!B!"
    assert kernel.invoke_sync("p.f", text="c").value == "C!"


def test_a_prompt_may_call_a_prompt(kernel: Kernel) -> None:
    kernel.add_function("matn", function_name="inner", prompt="in {{$input}} {{$style}}")
    text = "{{matn.inner}} | {{inner 'b'}} | {{inner style='s'}} | {{$input}}"
    assert rendered(kernel, text, input="a") == "<in a > | <in b > | <in a s> | a"


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("a {{sana.oy}}", r"\{\{sana.oy\}\} \(line 1, column 5\): there is no function"),
        ("{{sana.nol 'x'}}", "takes no arguments"),
        ("{{sana.kun 'ikki'}}", "farq"),
        ("{{sana.kun '1' farq='2'}}", "farq is given twice"),
        ("{{sana.kun oy='2'}}", "oy"),
        ("{{sana.hafta_kuni}}", "kun"),
        ("{{sana.hafta_kuni $unknown}}", "kun"),
        ("\n{{p.fails}}", r"\{\{p.fails\}\} \(line 2, column 3\): it broke"),
        ("{{p.silent}}", "LookupError"),
    ],
)
def test_a_call_that_fails_says_which_it_was_and_why(
    kernel: Kernel, echo: Echo, template: str, problem: str
) -> None:
    def fails() -> None:
        raise LookupError("it broke")

    def silent() -> None:
        raise LookupError

    kernel.add_plugin({"fails": fails, "silent": silent}, "p")
    with pytest.raises(TemplateRenderError, match=problem) as raised:
        kernel.invoke_sync(prompt(kernel, template))
    assert raised.value.function is not None
    assert echo.asked == []


def test_errors_of_the_service_come_through_nested_prompts_as_they_are(kernel: Kernel) -> None:
    class Refusing:
        async def chat(self, messages: object, *, tools: object = None) -> Reply:
            raise llmbroker.NoLLMAvailableError("none", reason="no_keys")

    kernel.add_service(Refusing(), overwrite=True)
    kernel.add_function("matn", function_name="inner", prompt="x")
    with pytest.raises(llmbroker.NoLLMAvailableError):
        kernel.invoke_sync(prompt(kernel, "{{matn.inner}}"))


def test_a_function_gets_no_more_than_its_time(kernel: Kernel) -> None:
    @llmbroker.function(timeout=0.01)
    async def slow() -> None:
        await asyncio.sleep(60)

    kernel.add_function("p", slow)
    with pytest.raises(TemplateRenderError, match=r"no result within 0\.01 seconds"):
        rendered(kernel, "{{p.slow}}")


def test_prompts_that_call_each_other_for_ever_are_stopped(kernel: Kernel, echo: Echo) -> None:
    kernel.add_function("m", function_name="a", prompt="{{m.b}}")
    kernel.add_function("m", function_name="b", prompt="{{m.a}}")
    with pytest.raises(TemplateRenderError, match=r"more than 8 deep: m\.a → m\.b → m\.a"):
        kernel.invoke_sync("m.a")
    assert echo.asked == []


def test_prompts_that_go_round_through_python_are_stopped_too(kernel: Kernel) -> None:
    async def through_async(kernel: Kernel) -> str:
        return str(await kernel.invoke("m.a"))

    def through_thread(kernel: Kernel) -> str:
        return str(kernel.invoke_sync("m.a"))

    kernel.add_plugin({"a": "{{m.next}}", "next": through_async}, "m")
    with pytest.raises(TemplateRenderError, match="more than 8 deep"):
        kernel.invoke_sync("m.a")
    kernel.add_function("m", through_thread, function_name="next")
    with pytest.raises(TemplateRenderError, match="more than 8 deep"):
        kernel.invoke_sync("m.a")


def test_prompts_that_fan_out_are_stopped(echo: Echo) -> None:
    kernel = Kernel(echo, limits=TemplateLimits(calls_in_all=30))
    kernel.add_function("m", function_name="leaf", prompt="x")
    for name, called in [("b", "leaf"), ("a", "b")]:
        kernel.add_function("m", function_name=name, prompt=f"{{{{m.{called}}}}}" * 10)
    with pytest.raises(TemplateRenderError, match="more than 30 calls in all"):
        kernel.invoke_sync("m.a")
    assert len(echo.asked) <= 30
