"""Tools of remote MCP servers, from what the servers listed last.

The protocol's SDK takes 34 MB and half a second to import, and most processes never speak to a
server: what needs it is in ``mcp_calls``, which is imported when the first call is made.
"""

from __future__ import annotations

from typing import Any, cast

from agents.models import McpServer
from agents.models.mcp_servers import ALL_TOOLS, Listed
from agents.tool_registry import Tool
from agents.tool_sources.http_tools import GRACE
from llmbroker import Function, ToolContext


def mcp_tools(server: McpServer) -> list[Tool]:
    """The tools of a server that runs may use, from what it listed last."""
    allowed = server.allowed_tools
    listed = cast("list[Listed]", server.tools)
    return [_tool(server, each) for each in listed if allowed is None or each["remote"] in allowed]


def _tool(server: McpServer, listed: Listed) -> Tool:
    def call(_tool_context: ToolContext, /, **arguments: Any) -> str:
        from agents.tool_sources.mcp_calls import call_tool  # noqa: PLC0415 - see above

        return call_tool(server, listed["remote"], arguments, _tool_context)

    return Tool(
        Function(
            call,
            name=listed["name"],
            description=listed["description"],
            parameters=listed["parameters"],
            effect=listed["effect"],
            requires_approval=_requires_approval(server, listed),
            timeout=server.timeout + GRACE,
        ),
        "mcp",
    )


def _requires_approval(server: McpServer, listed: Listed) -> bool:
    names = {ALL_TOOLS, listed["remote"], listed["name"]}
    return not names.isdisjoint(server.requires_approval)
