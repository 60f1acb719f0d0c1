"""The second seed's programs run with nothing changed but the import and the service line."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

import llmbroker
from tests.llmbroker.conftest import MakeBroker, model
from tests.support.model_server import ModelServer, say

SEED = Path(__file__).parent / "seed"

# The whole difference.
CHANGES = {
    "import semantic_kernel as sk\n": "import llmbroker as sk\n",
    "from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion\n": "",
    'OpenAIChatCompletion(service_id="chat", ai_model_id="gpt-4")': "broker",
    "from semantic_kernel.functions import kernel_function\n": (
        "from llmbroker import kernel_function\n"
    ),
}


def program(name: str) -> str:
    """One of the seed's programs, kept in a file letter for letter, with the changes made."""
    text = (SEED / f"{name}.py.txt").read_text("utf-8")
    for old, new in CHANGES.items():
        text = text.replace(old, new)
    return text


SEMANTIC_FUNCTION = program("semantic")
NATIVE_FUNCTION = program("native")
BOTH = program("both")

# The seed shows this prompt and stops there; it is added as its first prompt is.
AND_INVOKED = """\
salomlashuv = kernel.add_function(
    function_name="salomlashuv",
    plugin_name="matn",
    prompt=salomlashuv_prompt,
)
salom = await kernel.invoke(salomlashuv)
"""


def run(*programs: str, broker: object) -> dict[str, object]:
    """The names that the programs leave behind, run one after another as a notebook's cells."""
    names: dict[str, object] = {"broker": broker}

    async def cells() -> None:
        for program in programs:
            code = compile(program, "seed", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            value = eval(code, names)  # noqa: S307 - these are the programs above
            if inspect.isawaitable(value):
                await value

    asyncio.run(cells())
    return names


def async_broker(server: ModelServer) -> llmbroker.AsyncBroker:
    registry = llmbroker.InMemoryRegistry([model(server)])
    return llmbroker.AsyncBroker(registry, secrets={"KEY": "sk-everybody"})


BrokerOf = Callable[[ModelServer], object]


@pytest.fixture(params=["blocking", "async", "scoped", "direct"])
def broker_of(request: pytest.FixtureRequest, make_broker: MakeBroker) -> BrokerOf:
    kinds: dict[str, BrokerOf] = {
        "blocking": lambda server: make_broker(model(server)),
        "async": async_broker,
        "scoped": lambda server: make_broker(model(server)).for_scope("ann"),
        "direct": lambda server: make_broker(model(server)).direct(name="alpha"),
    }
    return kinds[request.param]


def asked(server: ModelServer) -> list[tuple[str, str]]:
    return [(each["role"], each["content"]) for each in server.requests[-1].messages]


def test_the_summary_prompt_runs(server: ModelServer, broker_of: BrokerOf) -> None:
    server.script(say("Matn uzun."))

    names = run(SEMANTIC_FUNCTION, broker=broker_of(server))

    assert str(names["natija"]) == "Matn uzun."
    text = "Quyidagi matnni bitta jumlada xulosala:\n \nuzun matn...\n \nXulosa:"
    assert asked(server) == [("user", text)]


def test_the_date_plugin_runs(server: ModelServer, broker_of: BrokerOf) -> None:
    server.script(say("Matn uzun."))

    names = run(
        SEMANTIC_FUNCTION,
        NATIVE_FUNCTION,
        'sana = await kernel.invoke("sana.bugungi_sana")',
        broker=broker_of(server),
    )

    assert re.fullmatch(r"\d{4}-\d\d-\d\d", str(names["sana"]))


def test_the_greeting_calls_the_date_inside_its_prompt(
    server: ModelServer, broker_of: BrokerOf
) -> None:
    server.script(say("Matn uzun."), say("Assalomu alaykum!"))
    before = datetime.now()  # noqa: DTZ005 - the plugin's own clock

    names = run(SEMANTIC_FUNCTION, NATIVE_FUNCTION, BOTH, AND_INVOKED, broker=broker_of(server))

    days = {each.strftime("%Y-%m-%d") for each in (before, datetime.now())}  # noqa: DTZ005
    assert str(names["salom"]) == "Assalomu alaykum!"
    assert asked(server) in [
        [("user", f"Bugun {day}.\nFoydalanuvchiga shu sanaga mos, do'stona salomlashuv yoz.")]
        for day in days
    ]
