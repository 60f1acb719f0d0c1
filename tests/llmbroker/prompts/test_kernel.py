"""Kernel: adding functions, invoking them, and templates that call them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any, Literal

import pytest

import llmbroker
from llmbroker import (
    BadArgumentsError,
    Kernel,
    PromptTemplate,
    PromptVariable,
    TemplateLimits,
    TemplateRenderError,
    ToolContext,
    UnknownFunctionError,
    kernel_function,
)


@dataclass
class Reply:
    """What Echo answers."""

    text: str
    tool_calls: None = None
    usage: llmbroker.Usage | None = None


@dataclass
class Echo:
    """A service that answers with what it was last asked, and notes all that it was given."""

    scope: str | None = "ann"
    asked: list[list[dict[str, Any]]] = field(default_factory=list)
    options: list[dict[str, Any]] = field(default_factory=list)

    async def chat(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: object = None,
        operation: str | None = None,
        **options: Any,
    ) -> Reply:
        self.asked.append(messages)
        self.options.append({"operation": operation, **options})
        return Reply(f"<{messages[-1]['content']}>")


class Sana:
    """A plugin."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    @kernel_function(description="Kunni qaytaradi")
    def kun(self, farq: int = 0) -> str:
        self.calls.append(f"kun {farq!r}")
        return f"2026-01-{5 + farq:02}"

    @kernel_function(name="hafta_kuni")
    async def weekday(self, kun: date) -> str:
        """Haftaning kuni."""
        self.calls.append(f"hafta_kuni {kun!r}")
        return kun.strftime("%A")

    @llmbroker.function(effect="pure")
    def nol(self) -> int:
        """Nol."""
        return 0

    @staticmethod
    @kernel_function
    def birga(*soz: str) -> str:
        return " ".join(soz)

    def yashirin(self) -> str:
        return "not offered"


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def kernel(echo: Echo) -> Kernel:
    kernel = Kernel(echo)
    kernel.add_plugin(Sana(), plugin_name="sana")
    return kernel


def prompt(kernel: Kernel, text: Any, **options: Any) -> llmbroker.KernelFunction:
    return kernel.add_function("matn", function_name="x", prompt=text, **options)


def rendered(kernel: Kernel, text: str, **variables: object) -> str:
    return str(kernel.render_sync(prompt(kernel, text), **variables))


# Adding


def test_a_plugin_brings_its_marked_methods_and_no_others(kernel: Kernel) -> None:
    assert sorted(kernel.functions) == ["sana.birga", "sana.hafta_kuni", "sana.kun", "sana.nol"]
    described = {name: each.function.description for name, each in kernel.functions.items()}
    assert described["sana.kun"] == "Kunni qaytaradi"
    assert described["sana.hafta_kuni"] == "Haftaning kuni."


def test_marked_methods_stay_methods() -> None:
    assert Sana().kun(1) == "2026-01-06"
    assert Sana.birga("a", "b") == "a b"


def test_a_dict_is_a_plugin_of_callables_and_prompts(kernel: Kernel) -> None:
    added = kernel.add_plugin(
        {"len": len, "hi": "Hi {{$name}}", "bye": [{"role": "system", "content": "Bye"}]}, "mixed"
    )
    assert sorted(added) == ["bye", "hi", "len"]
    assert str(kernel.invoke_sync(added["hi"], name="Bo")) == "<Hi Bo>"
    assert str(kernel.invoke_sync("mixed.bye")) == "<Bye>"


def test_an_object_without_functions_is_no_plugin() -> None:
    with pytest.raises(ValueError, match="no method marked by @kernel_function"):
        Kernel().add_plugin(object(), "nothing")


@pytest.mark.parametrize(
    ("plugin", "name"),
    [("my-plugin", "f"), ("p", "f.g"), ("", "f"), ("p", "ф"), ("p" * 40, "f" * 24)],
)
def test_names_are_such_that_templates_and_models_can_use_them(plugin: str, name: str) -> None:
    with pytest.raises(ValueError, match="names"):
        Kernel().add_function(plugin, function_name=name, prompt="x")
    with pytest.raises(ValueError, match="names"):
        Kernel().add_function(plugin, len, function_name=name)


def test_the_name_on_the_wire_is_plugin_and_function(kernel: Kernel) -> None:
    longest = Kernel().add_function("p" * 40, function_name="f" * 23, prompt="x")
    assert longest.function.name == "p" * 40 + "-" + "f" * 23
    assert kernel.functions["sana.kun"].function.name == "sana-kun"


def test_a_function_is_either_native_or_a_prompt(kernel: Kernel) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        kernel.add_function("p", len, prompt="x")
    with pytest.raises(ValueError, match="exactly one"):
        kernel.add_function("p", function_name="f")
    with pytest.raises(ValueError, match="needs a function_name"):
        kernel.add_function("p", prompt="x")
    with pytest.raises(ValueError, match="for prompts only"):
        kernel.add_function("p", len, strict=True)


def test_a_kernel_has_one_service_until_it_is_told_otherwise(kernel: Kernel) -> None:
    with pytest.raises(ValueError, match="overwrite=True"):
        kernel.add_service(Echo())
    kernel.add_service(Echo(), overwrite=True)
    with pytest.raises(TypeError, match="chat"):
        Kernel(object())


def test_without_a_service_native_functions_and_rendering_still_work() -> None:
    kernel = Kernel()
    kernel.add_plugin(Sana(), "sana")
    assert kernel.invoke_sync("sana.kun", farq=1).value == "2026-01-06"
    assert rendered(kernel, "{{sana.kun}}") == "2026-01-05"
    with pytest.raises(llmbroker.LLMBrokerError, match="no service"):
        kernel.invoke_sync("matn.x")


# Finding


@pytest.mark.parametrize("name", ["sana.kun", "sana-kun", "kun"])
def test_functions_are_found_by_their_names(kernel: Kernel, name: str) -> None:
    assert str(kernel.invoke_sync(name)) == "2026-01-05"


def test_a_bare_name_means_the_own_plugin_first_and_else_the_only_one(kernel: Kernel) -> None:
    kernel.add_function("matn", lambda: "mine", function_name="kun")
    assert rendered(kernel, "{{kun}} {{sana.kun}} {{nol}}") == "mine 2026-01-05 0"
    with pytest.raises(UnknownFunctionError, match=r"'kun' may be any of sana\.kun, matn\.kun"):
        kernel.invoke_sync("kun")


def test_an_unknown_function_is_told_with_those_that_exist(kernel: Kernel) -> None:
    with pytest.raises(UnknownFunctionError, match=r"no function 'sana\.oy', only .*sana\.kun"):
        kernel.invoke_sync("sana.oy")


# Invoking


def test_a_prompt_function_answers_with_the_models_text(kernel: Kernel, echo: Echo) -> None:
    result = kernel.invoke_sync(prompt(kernel, "Sum up: {{$input}}"), input="a & b")
    assert (str(result), result.value, result.function) == ("<Sum up: a & b>",) * 2 + ("matn.x",)
    assert result.reply.text == "<Sum up: a & b>"
    assert str(result.rendered) == "Sum up: a & b"
    assert echo.asked == [[{"role": "user", "content": "Sum up: a & b"}]]


def test_a_native_function_gives_its_value(kernel: Kernel) -> None:
    result = kernel.invoke_sync("sana.nol")
    assert (result.value, str(result), result.reply, result.rendered) == (0, "0", None, None)


def test_arguments_of_native_functions_are_converted_and_checked(kernel: Kernel) -> None:
    assert kernel.invoke_sync("sana.kun", farq="2").value == "2026-01-07"
    assert kernel.invoke_sync("sana.hafta_kuni", kun="2026-01-05").value == "Monday"
    with pytest.raises(BadArgumentsError, match="farq"):
        kernel.invoke_sync("sana.kun", farq="ikki")


def test_variables_may_have_names_that_are_no_identifiers(kernel: Kernel) -> None:
    function = prompt(kernel, "{{$1st}} {{$class}} {{$function}} {{$self}} {{$tool_context}}")
    variables = {"1st": 1, "class": 2, "function": 3, "self": 4}
    assert str(kernel.invoke_sync(function, variables, tool_context=5)) == "<1 2 3 4 5>"


def test_ratings_know_the_prompt_by_its_operation(kernel: Kernel, echo: Echo) -> None:
    kernel.invoke_sync(prompt(kernel, "x", chat_options={"wait": 3.0}))
    kernel.invoke_sync(prompt(kernel, "x", chat_options={"operation": "mine"}))
    assert echo.options == [{"operation": "matn.x", "wait": 3.0}, {"operation": "mine"}]


def test_options_of_the_kernel_go_to_every_call(echo: Echo) -> None:
    kernel = Kernel(echo, chat_options={"trace_id": "t1", "wait": 1.0})
    kernel.invoke_sync(prompt(kernel, "x", chat_options={"wait": 2.0}))
    assert echo.options == [{"operation": "matn.x", "trace_id": "t1", "wait": 2.0}]


# Templates that call functions


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


# Declared variables


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


# What a native function may ask for


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
