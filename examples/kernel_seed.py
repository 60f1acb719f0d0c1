"""The second seed's programs for Semantic Kernel, with the import and the service line changed.

    LLMBROKER_BASE_URL=… LLMBROKER_MODEL=… LLMBROKER_API_KEY=… python -m examples.kernel_seed

Then the bonus of its exercise: both kinds of function as tools, and the plan beforehand.
"""

# ruff: noqa: T201, INP001, PLC0415, DTZ005 - it prints, and is the seed's code as it stands

from __future__ import annotations

import asyncio

import llmbroker
import llmbroker as sk
from llmbroker import kernel_function

MATN = """Toshkent — O'zbekiston poytaxti. Unda uch millionga yaqin odam yashaydi. 1966 yilgi
zilziladan keyin shahar qaytadan qurilgan; metrosi 1977 yilda ochilgan."""


class SanaPlugin:
    """Tabiiy funksiya."""

    @kernel_function(description="Bugungi sanani qaytaradi", effect="pure")
    def bugungi_sana(self) -> str:
        from datetime import datetime

        return datetime.now().strftime("%Y-%m-%d")


async def main(broker: llmbroker.Broker) -> None:
    """The three programs in one kernel, and then their functions as tools."""
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
        description="Matnni bitta jumlada xulosalaydi",
    )
    natija = await kernel.invoke(xulosala, input=MATN)
    print(f"matn.xulosala: {natija}\n")

    kernel.add_plugin(SanaPlugin(), plugin_name="sana")
    print(f"sana.bugungi_sana: {await kernel.invoke('sana.bugungi_sana')}\n")

    # Semantik funksiya tabiiy funksiya natijasini ishlatadi
    salomlashuv_prompt = """Bugun {{sana.bugungi_sana}}.
Foydalanuvchiga shu sanaga mos, do'stona salomlashuv yoz."""

    salomlashuv = kernel.add_function(
        function_name="salomlashuv",
        plugin_name="matn",
        prompt=salomlashuv_prompt,
        description="Bugungi kunga mos salomlashuv yozadi",
    )
    salom = await kernel.invoke(salomlashuv)
    print(f"matn.salomlashuv was asked: {salom.rendered}")
    print(f"matn.salomlashuv: {salom}\n")

    goal = "Bugun qaysi sana? Sanani ayt, keyin do'stona salomlashuv yoz."
    plan = await kernel.plan(goal)
    for step in plan.steps:
        print(f"plan, turn {step.turn}: {step.function}({step.arguments})")

    tools, dispatch = kernel.tools("sana", "matn")
    messages = [{"role": "user", "content": goal}]
    reply = await asyncio.to_thread(
        llmbroker.run_tool_loop, broker, messages, tools=tools, dispatch=dispatch
    )
    print(f"\n{goal}\n{reply.text}")


if __name__ == "__main__":
    with llmbroker.Broker() as the_broker:
        asyncio.run(main(the_broker))
