"""How MCP servers and their tools fail."""


class McpUnavailableError(Exception):
    """The server cannot be used now; the reason in words that hold nothing of the request."""


class McpToolError(Exception):
    """The tool failed on its server, in the server's words."""
