"""Sending what webhooks tell: each connection guarded, no redirect followed, answers not kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aiohttp.abc import AbstractResolver

from agents.services.deliveries import Outgoing, Report
from agents.tool_sources.guarded_http import UnreachableError, post
from tenants.addresses import address_policy

TIMEOUT = 10.0
"""Seconds for the whole exchange: an endpoint answers first and works afterwards."""


def send_all(
    outgoing: Sequence[Outgoing], *, resolver: AbstractResolver | None = None
) -> list[Report]:
    """Send side by side; one report each, whatever happens."""

    async def together() -> list[Report]:
        return await asyncio.gather(*(_send(each, resolver) for each in outgoing))

    return asyncio.run(together())


async def _send(outgoing: Outgoing, resolver: AbstractResolver | None) -> Report:
    try:
        answer = await post(
            outgoing.url,
            outgoing.body,
            outgoing.headers,
            policy=address_policy(),
            timeout=TIMEOUT,
            resolver=resolver,
        )
    except UnreachableError as error:
        return Report(outgoing, problem=str(error))
    return Report(outgoing, answer.status)
