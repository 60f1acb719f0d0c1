"""Templates and values that nobody would write."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import example, given
from hypothesis import strategies as st

from llmbroker import Origin, PromptTemplate, TemplateSyntaxError
from llmbroker.prompts.errors import Place
from llmbroker.prompts.nodes import Argument, Call, Node, Variable
from llmbroker.prompts.parser import parse

SPECIAL = st.text(st.sampled_from(list("{}$'\"\\= \n\t.ax1_é\u00a0\ud800")))
NAMES = st.text(st.sampled_from("abzAZ019_"), min_size=1, max_size=8)
ANY_TEXT = st.text(st.characters())
SPACES = st.text(st.sampled_from(" \t\r\n"), min_size=1, max_size=3)


def quoted(text: str, quote: str) -> str:
    escaped = text.replace("\\", "\\\\").replace(quote, f"\\{quote}")
    return f"{quote}{escaped}{quote}"


def place_of_error(source: str, *, strict: bool) -> Place | None:
    try:
        parse(source, strict=strict)
    except TemplateSyntaxError as error:
        return error.place
    return None


@given(SPECIAL | ANY_TEXT, st.booleans())
@example("{{", False)
@example("{{'\\", True)
def test_parsing_gives_nodes_or_a_syntax_error_within_the_text(source: str, strict: bool) -> None:
    place = place_of_error(source, strict=strict)
    if place is not None:
        lines = source[: place.offset + 1].split("\n")
        assert 0 <= place.offset < len(source)
        assert (place.line, place.column) == (len(lines), len(lines[-1]))


@given(ANY_TEXT.filter(lambda text: "{{" not in text))
def test_text_without_blocks_is_itself(text: str) -> None:
    assert str(PromptTemplate(text).render()) == text


@given(ANY_TEXT, st.sampled_from("'\""), SPACES, SPACES)
def test_any_text_can_be_quoted(text: str, quote: str, before: str, after: str) -> None:
    source = f"<{{{{{before}{quoted(text, quote)}{after}}}}}>"
    assert str(PromptTemplate(source).render()) == f"<{text}>"


@given(SPECIAL | ANY_TEXT)
def test_a_value_is_only_ever_text_of_its_own_message(value: str) -> None:
    template = PromptTemplate(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "[{{$value}}] {{f.g $value}}"},
        ]
    )
    prompt = template.render({"value": value}, [value])
    assert prompt.as_chat() == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": f"[{value}] {value}"},
    ]
    origins = [(each.origin, each.text) for each in prompt.messages[1].segments]
    assert origins == [
        (Origin.TEMPLATE, "["),
        (Origin.VARIABLE, value),
        (Origin.TEMPLATE, "] "),
        (Origin.RESULT, value),
    ]


ARGUMENTS = NAMES.map(Variable) | ANY_TEXT


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, Mapping[str, object]]:
    """A call as it is written, and what it says."""
    plugin, function = draw(st.none() | NAMES), draw(NAMES)
    first: Argument | None = draw(st.none() | ARGUMENTS)
    named = draw(st.dictionaries(NAMES, ARGUMENTS, max_size=3))

    def written(argument: Argument) -> str:
        if isinstance(argument, Variable):
            return f"${argument.name}"
        return quoted(argument, draw(st.sampled_from("'\"")))

    words = [f"{plugin}.{function}" if plugin else function]
    words += [written(first)] if first is not None else []
    words += [f"{name}={written(argument)}" for name, argument in named.items()]
    source = "{{" + draw(st.just("") | SPACES)
    source += "".join(word + draw(SPACES) for word in words) + "}}"
    return source, {"plugin": plugin, "function": function, "first": first, "named": named}


@given(ANY_TEXT.filter(lambda text: "{" not in text), calls())
def test_what_a_call_says_is_what_was_written(
    text: str, call: tuple[str, Mapping[str, object]]
) -> None:
    source, said = call
    nodes: list[Node] = parse(f"{text}{source}")
    node = nodes[-1]
    assert isinstance(node, Call)
    assert {name: getattr(node, name) for name in said} == said
    assert node.place.offset == len(text) + source.index(node.name)
