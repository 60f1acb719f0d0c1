"""A run's server-sent events, as a client reads them."""

import asyncio
import json
from contextlib import asynccontextmanager

import aiohttp


class Stream:
    """One open stream, read event by event."""

    def __init__(self, response):
        self.response = response
        self.headers = response.headers
        self.comments = 0

    async def next(self, timeout=20.0):
        """The next event as {id, event, data}; None at the end."""
        fields = {}
        async with asyncio.timeout(timeout):
            while line := await self.response.content.readline():
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if not name and fields.keys() - {"retry"}:
                    return {**fields, "data": json.loads(fields["data"])}
                if line.startswith(b":"):
                    self.comments += 1
                elif name:
                    fields[name] = value
        return None

    async def rest(self):
        """The events to the end; what is live only has no id, and is left out."""
        found = []
        while (event := await self.next()) is not None:
            if "id" in event:
                found.append((int(event["id"]), event["event"]))
        return found


@asynccontextmanager
async def stream_of(server, run, token, *, query="", **headers):
    headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {token}", **headers}
    url = f"{server}/api/v1/runs/{run.id}/events{query}"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        yield Stream(response)
