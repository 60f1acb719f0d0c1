"""What is a block, what is text, and what is an error at which place."""

from __future__ import annotations

from contextlib import suppress

import pytest

from llmbroker import PromptTemplate, TemplateLimits, TemplateSyntaxError
from llmbroker.prompts.nodes import Call, Variable


def rendered(source: str, **variables: object) -> str:
    return str(PromptTemplate(source).render(variables))


def call_in(source: str) -> Call:
    (call,) = PromptTemplate(source).calls
    return call


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Hi {{$n}}!", "Hi 3!"),
        ("{{ \t\r\n$n\n}}", "3"),
        (" {{$n}} ", " 3 "),
        ("{{ {{$n}} }}", "{{ 3 }}"),
        ("{{{$n}}}", "{3}"),
        ("{{{{$n}}}}", "{{3}}"),
        ("{{$n}}}", "3}"),
        ("{{ a {{$n}}", "{{ a 3"),
        ("{{$n}}{{$n}}", "33"),
        ("{{$1st}}", "first"),
        ("{{$N}}", ""),
    ],
)
def test_a_block_is_what_its_innermost_braces_hold(source: str, text: str) -> None:
    assert rendered(source, **{"n": 3, "1st": "first"}) == text


@pytest.mark.parametrize(
    "source",
    ["", "{", "{{", "}}", "{{}}", "{{ }}", "{{$n", "{{$n}", "{{ 'never closed }} {{$n}}", "$n"],
)
def test_what_is_no_block_is_text(source: str) -> None:
    assert rendered(source, n=3) == source


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ '{{' }}", "{{"),
        ('{{ "}}" }}', "}}"),
        ("{{ '{{$n}}' }}", "{{$n}}"),
        ("{{''}}", ""),
        (r"{{'it\'s'}}", "it's"),
        (r'{{"say \"hi\""}}', 'say "hi"'),
        (r"{{'back\\slash'}}", r"back\slash"),
        (r"{{'\n stays'}}", r"\n stays"),
        (r"{{'ends in \\'}}", "ends in \\"),
        ("{{'other \"quote\"'}}", 'other "quote"'),
    ],
)
def test_a_quoted_value_is_its_text(source: str, text: str) -> None:
    assert rendered(source, n=3) == text


def test_a_call_takes_one_plain_argument_and_then_named_ones() -> None:
    call = call_in(r"""{{ sana.qosh $kun soni='2 ta' sababi="it's" bosh='' boshqa=$x }}""")
    assert (call.plugin, call.function, call.first) == ("sana", "qosh", Variable("kun"))
    assert call.named == {
        "soni": "2 ta",
        "sababi": "it's",
        "bosh": "",
        "boshqa": Variable("x"),
    }


def test_a_call_may_name_no_plugin_and_take_nothing() -> None:
    call = call_in("{{today}}")
    assert (call.plugin, call.function, call.arguments) == (None, "today", [])


def test_a_template_knows_its_variables_in_the_order_of_their_use() -> None:
    template = PromptTemplate("{{$b}} {{f.g $a name=$c}} {{$b}} {{'$d'}}")
    assert template.variables == ("b", "a", "c")


@pytest.mark.parametrize(
    ("source", "line", "column", "reason"),
    [
        ("{{$}}", 1, 3, "'$' is no variable"),
        ("{{$a-b}}", 1, 3, "'$a-b' is no variable"),
        ("a\nb {{ $x $y }}", 2, 9, "nothing can follow"),
        ("{{'a''b'}}", 1, 3, "a space must follow"),
        ("{{a.b.c}}", 1, 3, "'a.b.c' is no function"),
        ("{{f(1)}}", 1, 3, "is no function"),
        ("{{f x}}", 1, 5, "an argument is"),
        ("{{f 'a' 'b'}}", 1, 9, "only the first argument"),
        ("{{f x = 1}}", 1, 7, "no space"),
        ("{{f x= 1}}", 1, 5, "no space"),
        ("{{f x=1 }}", 1, 5, "an argument is"),
        ("{{f x=$a x=$b}}", 1, 10, "x is given twice"),
        ("{{x=$a}}", 1, 3, "an argument without a function"),
        ('{{"a": 1}}', 1, 3, "a space must follow"),
        ("{{сана}}", 1, 3, "is no function"),
    ],
)
def test_an_error_says_what_is_wrong_where(
    source: str, line: int, column: int, reason: str
) -> None:
    with pytest.raises(TemplateSyntaxError) as raised:
        PromptTemplate(source)
    place = raised.value.place
    assert (place.line, place.column) == (line, column)
    assert reason in raised.value.reason
    assert str(raised.value).startswith(f"line {line}, column {column}: ")
    assert len(source[: place.offset].split("\n")) == line


def test_an_error_in_a_list_of_messages_names_the_message() -> None:
    with pytest.raises(TemplateSyntaxError, match=r"^message 2, line 1, column 3: "):
        PromptTemplate([{"role": "system", "content": "a"}, {"role": "user", "content": "{{$}}"}])


def test_strict_templates_close_what_they_open() -> None:
    with pytest.raises(TemplateSyntaxError, match=r"line 2, column 1: .* never closed"):
        PromptTemplate("{{$a}}\n{{$b}", strict=True)
    assert PromptTemplate("{{ '{{' }} {{}}", strict=True).render()


def test_size_and_calls_are_limited_over_all_messages() -> None:
    limits = TemplateLimits(source_chars=20, calls=2)
    with pytest.raises(TemplateSyntaxError, match="more than 20 characters"):
        PromptTemplate("x" * 21, limits=limits)
    user = {"role": "user", "content": "{{f}} {{f}}"}
    assert PromptTemplate([user], limits=limits).calls
    with pytest.raises(TemplateSyntaxError, match=r"message 2, .* 20 characters"):
        PromptTemplate([user, user], limits=limits)
    with pytest.raises(TemplateSyntaxError, match="line 1, column 13: more than 2 calls"):
        PromptTemplate("{{f}}{{f}}{{f}}", limits=limits)


@pytest.mark.parametrize("unit", ["{{'", "{{", "{{'\\", "'{{\"", "{{'}} ", "{{$x}}", "{{f '{{' "])
def test_the_longest_templates_are_read_in_one_pass(unit: str) -> None:
    source = unit * (100_000 // len(unit))
    with suppress(TemplateSyntaxError):  # what matters is that it ends
        PromptTemplate(source)
