"""Look-ups with answers that a test writes down: what a name means may change between two."""

from __future__ import annotations

import socket

from aiohttp.abc import AbstractResolver, ResolveResult


class Names(AbstractResolver):
    """A resolver with answers one after another."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        kinds = {True: socket.AF_INET6, False: socket.AF_INET}
        return [
            ResolveResult(
                hostname=host, host=each, port=port, family=kinds[":" in each], proto=0, flags=0
            )
            for each in self.answers.pop(0)
        ]

    async def close(self) -> None:
        """Nothing is open."""
