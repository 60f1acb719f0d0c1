"""MCP servers. No serializer here shows the token."""

from __future__ import annotations

from rest_framework import serializers

from agents.models import McpServer
from agents.models.http_tools import MAX_TIMEOUT
from agents.models.mcp_servers import AUTH_HEADER, MAX_PLUGIN, PLUGIN
from tenants.serializers import SecretField
from tenants.serializers_base import StrictSerializer

MAX_ALLOWED = 200


class McpServerChange(StrictSerializer):
    """What of an MCP server can change."""

    url = serializers.CharField(max_length=500)
    auth_header = serializers.CharField(max_length=64, validators=[AUTH_HEADER], required=False)
    auth_token = SecretField(required=False)
    allowed_tools = serializers.ListField(
        child=serializers.CharField(max_length=200),
        max_length=MAX_ALLOWED,
        required=False,
        allow_null=True,
    )
    requires_approval = serializers.ListField(
        child=serializers.CharField(max_length=200),
        max_length=MAX_ALLOWED,
        required=False,
        help_text='The tools whose calls wait for somebody\'s word; ["*"] is all.',
    )
    timeout = serializers.FloatField(min_value=0.1, max_value=MAX_TIMEOUT, required=False)
    enabled = serializers.BooleanField(required=False)


class McpServerInput(McpServerChange):
    """An MCP server to use."""

    plugin = serializers.CharField(max_length=MAX_PLUGIN, validators=[PLUGIN])


class McpServerOutput(serializers.ModelSerializer[McpServer]):
    """An MCP server, with the tools that it listed last."""

    object = serializers.CharField(default="mcp_server", read_only=True)
    has_token = serializers.SerializerMethodField()
    tools = serializers.JSONField(read_only=True)

    class Meta:
        model = McpServer
        fields = (
            "id", "object", "plugin", "url", "auth_header", "has_token", "allowed_tools",
            "requires_approval", "timeout", "enabled", "tools", "listed_at", "last_error",
            "created_at", "updated_at",
        )  # fmt: skip
        read_only_fields = fields

    def get_has_token(self, server: McpServer) -> bool:
        """Whether a token is stored."""
        return server.data_key_id is not None
