"""Kernel: adding functions, finding them, invoking them."""

from __future__ import annotations

import pytest

import llmbroker
from llmbroker import BadArgumentsError, Kernel, UnknownFunctionError
from tests.llmbroker.prompts.conftest import Echo, Sana, prompt, rendered


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
