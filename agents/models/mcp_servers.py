"""Remote MCP servers whose tools a tenant's runs can use."""

from typing import Any, TypedDict

from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from agents.models.http_tools import MAX_TIMEOUT, TIMEOUT_LIMITS
from agents.models.sealed import SealedRow
from llmbroker.tools.function import Effect

MAX_PLUGIN = 30
PLUGIN = RegexValidator(
    rf"\A[0-9A-Za-z_]{{1,{MAX_PLUGIN}}}\Z",
    f"A plugin's name is 1–{MAX_PLUGIN} letters A-Z, digits and _.",
)
ALL_TOOLS = "*"
AUTH_HEADER = RegexValidator(
    r"\A(?:Authorization|X-[A-Za-z0-9-]{1,60})\Z", "The header is Authorization or begins with X-."
)


class Listed(TypedDict):
    """A server's tool as it is kept; ``name`` is what models call it."""

    name: str
    remote: str
    description: str
    parameters: dict[str, Any]
    effect: Effect


class McpServer(SealedRow):
    """A server by its URL; the sealed secret is the token that it asks for, if it asks.

    ``tools`` is what it listed last: nobody is asked when tools are looked up.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    plugin = models.CharField(
        max_length=MAX_PLUGIN, validators=[PLUGIN], help_text="Its tools are plugin-tool."
    )
    url = models.CharField("URL", max_length=500)
    auth_header = models.CharField(
        max_length=64,
        default="Authorization",
        validators=[AUTH_HEADER],
        help_text="Where the token goes; in Authorization the word Bearer stands before it.",
    )
    allowed_tools = ArrayField(
        models.CharField(max_length=200),
        null=True,
        blank=True,
        help_text="The server's tools that runs may use, by the server's names; all if left out.",
    )
    requires_approval = ArrayField(
        models.CharField(max_length=200),
        default=list,
        db_default=[],
        blank=True,
        help_text="The tools whose calls wait for somebody's word, by the server's names or by"
        f" those that models see; {ALL_TOOLS} is all.",
    )
    timeout = models.FloatField(default=30.0, validators=TIMEOUT_LIMITS, help_text="Seconds.")
    enabled = models.BooleanField(default=True)
    tools = models.JSONField(default=list, editable=False)
    listed_at = models.DateTimeField(null=True, editable=False)
    last_error = models.CharField(max_length=500, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "MCP server"
        constraints = (
            models.UniqueConstraint(fields=["tenant", "plugin"], name="mcp_plugin_per_tenant"),
            models.CheckConstraint(
                condition=Q(plugin__regex=rf"^[0-9A-Za-z_]{{1,{MAX_PLUGIN}}}$"),
                name="mcp_plugin_form",
            ),
            models.CheckConstraint(
                condition=Q(timeout__gte=0.1, timeout__lte=MAX_TIMEOUT), name="mcp_timeout_range"
            ),
        )

    def __str__(self) -> str:
        return self.plugin
