"""The second seed's programs, letter for letter but for the import and the service line."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from collections.abc import Callable
from datetime import datetime

import pytest

import llmbroker
from tests.llmbroker.conftest import MakeBroker, model
from tests.support.model_server import ModelServer, say

SEMANTIC_FUNCTION = '''\
import llmbroker as sk
 
kernel = sk.Kernel()
kernel.add_service(broker)
 
# Semantik funksiya — bu prompt shabloni
xulosala_prompt = """Quyidagi matnni bitta jumlada xulosala:
 
{{$input}}
 
Xulosa:"""
 
xulosala = kernel.add_function(
    function_name="xulosala",
    plugin_name="matn",
    prompt=xulosala_prompt,
)
 
natija = await kernel.invoke(xulosala, input="uzun matn...")
'''

NATIVE_FUNCTION = '''\
from llmbroker import kernel_function
 
 
class SanaPlugin:
    @kernel_function(description="Bugungi sanani qaytaradi")
    def bugungi_sana(self) -> str:
        from datetime import datetime
        return datetime.now().strftime("%Y-%m-%d")
 
 
kernel.add_plugin(SanaPlugin(), plugin_name="sana")
'''

BOTH = '''\
# Semantik funksiya tabiiy funksiya natijasini ishlatadi
salomlashuv_prompt = """Bugun {{sana.bugungi_sana}}.
Foydalanuvchiga shu sanaga mos, do'stona salomlashuv yoz."""
 
# LLM avval sana funksiyasini chaqiradi, keyin natijadan foydalanadi
'''

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
    assert asked(server) == [
        (
            "user",
            "Quyidagi matnni bitta jumlada xulosala:\n \nuzun matn...\n \nXulosa:",
        )
    ]


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
