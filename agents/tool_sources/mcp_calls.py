"""What is asked of remote MCP servers: their lists of tools, and calls of those."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Any, cast

import orjson
from mcp import Client, MCPError
from mcp_types import CallToolResult
from mcp_types import Tool as ListedTool

from agents.models import McpServer
from agents.models.mcp_servers import Listed
from agents.sealing import unseal
from agents.tool_sources.mcp_connection import Target
from agents.tool_sources.mcp_connections import connections
from agents.tool_sources.mcp_errors import McpToolError, McpUnavailableError
from llmbroker import ToolContext
from llmbroker.text import clip, storable_json
from llmbroker.tools.function import Effect
from llmbroker.wire.scrub import scrubbed
from tenants.addresses import address_policy

LIST_SECONDS = 15.0
MAX_TOOLS = 200
MAX_PAGES = 20
MAX_SCHEMA_BYTES = 32_000
MAX_ERROR = 500
IDEMPOTENCY_KEY = "llmbroker/idempotency-key"

_UNFIT = re.compile(r"[^0-9A-Za-z_]+")


def list_tools(server: McpServer) -> list[Listed]:
    """Ask the server for its tools. Raises McpUnavailableError with a reason to show."""
    try:
        found = connections.use(target_of(server), _all_pages, timeout=LIST_SECONDS)
    except MCPError as error:
        reason = _clean(server, error.message)
    except McpUnavailableError as error:
        reason = _clean(server, str(error))
    else:
        return named(server.plugin, found)
    raise McpUnavailableError(reason)


def named(plugin: str, tools: Iterable[ListedTool]) -> list[Listed]:
    """The tools under names that models and templates can call; of two with one name the first.

    What could not be offered is left out: a name that nothing is left of, a huge schema.
    """
    found: dict[str, Listed] = {}
    for tool in tools:
        name = f"{plugin}-{_UNFIT.sub('_', tool.name).strip('_')}"[:64]
        parameters = cast("dict[str, Any]", storable_json(tool.input_schema))
        fits = len(orjson.dumps(parameters)) <= MAX_SCHEMA_BYTES
        if name.endswith("-") or not fits or name in found or len(found) >= MAX_TOOLS:
            continue
        found[name] = Listed(
            name=name,
            remote=str(storable_json(tool.name)),
            description=clip(str(storable_json(tool.description or tool.title or "")), 1024),
            parameters=parameters,
            effect=_effect(tool),
        )
    return list(found.values())


def target_of(server: McpServer) -> Target:
    """Where and how to connect. Raises SecretUnavailable."""
    return Target(
        server.id,
        server.updated_at,
        address_policy(),
        server.url,
        server.auth_header,
        unseal(server),
    )


def text_of(result: CallToolResult) -> str:
    """The texts of a result; of what is no text its kind."""
    parts = [_part(block) for block in result.content]
    if not parts and result.structured_content is not None:
        return orjson.dumps(storable_json(result.structured_content)).decode()
    return "\n".join(parts)


def call_tool(
    server: McpServer, remote: str, arguments: dict[str, Any], context: ToolContext
) -> str:
    """The texts of the tool's result. Raises McpToolError with the server's words, or ours."""
    key = context.idempotency_key
    work = partial(
        Client.call_tool,
        name=remote,
        arguments=arguments,
        meta=cast("Any", {IDEMPOTENCY_KEY: key}) if key else None,
    )
    left = context.seconds_left()
    timeout = server.timeout if left is None else min(server.timeout, left)
    try:
        result = connections.use(target_of(server), work, timeout=timeout)
    except (MCPError, McpUnavailableError) as error:
        problem = str(error)
    else:
        if not result.is_error:
            return _clean(server, text_of(result), None)
        problem = text_of(result)
    raise McpToolError(_clean(server, problem))


async def _all_pages(client: Client) -> list[ListedTool]:
    found: list[ListedTool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None or len(found) >= MAX_TOOLS:
            break
    return found


def _effect(tool: ListedTool) -> Effect:
    """What the server says of its tool; without a word it may happen once."""
    hints = tool.annotations
    if hints is not None and hints.read_only_hint:
        return "pure"
    return "idempotent" if hints is not None and hints.idempotent_hint else "once"


def _part(block: Any) -> str:
    text = getattr(block, "text", None) or getattr(getattr(block, "resource", None), "text", None)
    return text if isinstance(text, str) else f"[{block.type}: not shown]"


def _clean(server: McpServer, text: str, limit: int | None = MAX_ERROR) -> str:
    """``text`` without the server's token, should it have sent it back."""
    token = unseal(server)
    if token is not None:
        text = scrubbed(text, [token.reveal()])
    return text if limit is None else clip(text, limit)
