"""Reads. Each takes the tenant, scope or caller that bounds what it may find.

Those that give one row raise NotFound where there is none.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db.models import Case, IntegerField, OuterRef, QuerySet, Subquery, When
from django.db.models.fields.json import KT, KeyTextTransform
from django.db.models.functions import Cast

from agents.models import (
    Agent,
    AgentVersion,
    Event,
    HttpTool,
    McpServer,
    PromptFunction,
    PromptVersion,
    Run,
    RunRetention,
    Schedule,
    Step,
    Thread,
    WebhookDelivery,
    WebhookEndpoint,
)
from tenants.caller import Caller
from tenants.errors import NotFound
from tenants.models import Scope, Tenant
from tenants.selectors import existing


def agents_of(tenant: Tenant) -> QuerySet[Agent]:
    """The agents of a tenant, which all its members may run, each with its newest ``version``."""
    newest = AgentVersion.objects.filter(agent=OuterRef("pk")).order_by("-number")
    agents = Agent.objects.select_related("prompt").filter(tenant=tenant)
    return agents.annotate(version=Subquery(newest.values("number")[:1]))


def agent_of(tenant: Tenant, agent_id: UUID) -> Agent:
    """One agent of a tenant."""
    return existing(agents_of(tenant).filter(id=agent_id), "agent")


def agent_by_slug(tenant: Tenant, slug: str) -> Agent:
    """The agent of a tenant with that slug. Raises NotFound."""
    agent = agents_of(tenant).filter(slug=slug).first()
    if agent is None:
        raise NotFound("No such agent: GET /api/v1/agents lists them by slug.", param="agent")
    return agent


def agent_version_of(agent: Agent, number: int) -> AgentVersion:
    """One version of an agent."""
    return existing(agent.versions.filter(number=number), "version")


def threads_of(caller: Caller) -> QuerySet[Thread]:
    """The threads of the caller's scope."""
    return Thread.objects.filter(tenant=caller.tenant, scope=caller.scope)


def thread_of(caller: Caller, thread_id: UUID) -> Thread:
    """One thread of the caller's scope."""
    return existing(threads_of(caller).filter(id=thread_id), "thread")


def schedules_of(caller: Caller) -> QuerySet[Schedule]:
    """The schedules of the caller's scope."""
    return Schedule.objects.filter(tenant=caller.tenant, scope=caller.scope)


def schedule_of(caller: Caller, schedule_id: UUID) -> Schedule:
    """One schedule of the caller's scope."""
    return existing(schedules_of(caller).filter(id=schedule_id), "schedule")


def runs_of(caller: Caller) -> QuerySet[Run]:
    """The runs of the caller's scope."""
    return Run.objects.select_related("agent", "agent_version").filter(
        tenant=caller.tenant, scope=caller.scope
    )


def run_of(caller: Caller, run_id: UUID) -> Run:
    """One run of the caller's scope."""
    return existing(runs_of(caller).filter(id=run_id), "run")


def run_retention_of(tenant: Tenant) -> RunRetention:
    """How long the tenant keeps its runs: its own rule, else the installation's."""
    own = RunRetention.objects.filter(tenant=tenant).first()
    return own or RunRetention(tenant=tenant, days=settings.RUN_DAYS)


def events_of(run_id: UUID) -> QuerySet[Event]:
    """The log of a run; a completed message with its ``text``, which its step holds."""
    said = Step.objects.filter(
        run_id=run_id, number=Cast(KeyTextTransform("step", OuterRef("data")), IntegerField())
    ).values_list(KT("message__content"))
    text = Case(When(type="message.completed", then=Subquery(said[:1])))
    return Event.objects.filter(run_id=run_id).annotate(text=text).order_by("sequence_number")


def active_runs(tenant: Tenant, scope: Scope | None) -> int:
    """How many runs of a scope, or of the whole tenant, are not over."""
    runs = Run.objects.filter(tenant=tenant).exclude(status__in=Run.TERMINAL)
    return (runs if scope is None else runs.filter(scope=scope)).count()


def run_by_idempotency_key(scope: Scope, key: str | None) -> Run | None:
    """The run that a scope created with that key."""
    runs = Run.objects.select_related("agent", "agent_version").filter(
        scope=scope, idempotency_key=key
    )
    return runs.first() if key else None


def prompts_of(tenant: Tenant) -> QuerySet[PromptFunction]:
    """The prompt functions of a tenant."""
    return PromptFunction.objects.filter(tenant=tenant)


def prompt_of(tenant: Tenant, slug: str, *, param: str | None = None) -> PromptFunction:
    """One prompt function of a tenant."""
    return existing(prompts_of(tenant).filter(slug=slug), "prompt function", param=param)


def version_of(prompt: PromptFunction, number: int | None = None) -> PromptVersion:
    """One version of a prompt function, the newest unless a number is given."""
    versions = prompt.versions.select_related("prompt").order_by("-number")
    numbered = versions if number is None else versions.filter(number=number)
    return existing(numbered, "version", param="version")


def versions_in_use(tenant: Tenant, at: datetime | None = None) -> QuerySet[PromptVersion]:
    """Of each prompt function of a tenant the newest version, or what was the newest ``at``."""
    versions = PromptVersion.objects.filter(prompt=OuterRef("pk"))
    if at is not None:
        versions = versions.filter(created_at__lte=at)
    newest = versions.order_by("-number").values("pk")[:1]
    in_use = prompts_of(tenant).annotate(newest=Subquery(newest)).values("newest")
    found = PromptVersion.objects.select_related("prompt").filter(prompt__tenant=tenant)
    return found.filter(pk__in=in_use).order_by("prompt__slug")


def http_tools_of(tenant: Tenant) -> QuerySet[HttpTool]:
    """The HTTP tools of a tenant."""
    return HttpTool.objects.select_related("tenant", "data_key").filter(tenant=tenant)


def http_tool_of(tenant: Tenant, tool_id: UUID) -> HttpTool:
    """One HTTP tool of a tenant."""
    return existing(http_tools_of(tenant).filter(id=tool_id), "HTTP tool")


def mcp_servers_of(tenant: Tenant) -> QuerySet[McpServer]:
    """The MCP servers of a tenant."""
    return McpServer.objects.select_related("tenant", "data_key").filter(tenant=tenant)


def mcp_server_of(tenant: Tenant, server_id: UUID) -> McpServer:
    """One MCP server of a tenant."""
    return existing(mcp_servers_of(tenant).filter(id=server_id), "MCP server")


def tool_name_is_taken(tenant: Tenant, name: str) -> bool:
    """Whether a tool that the tenant has added is called ``name``, or may come to be."""
    plugin = name.partition("-")[0]
    return (
        prompts_of(tenant).filter(slug=name).exists()
        or http_tools_of(tenant).filter(slug=name).exists()
        or mcp_servers_of(tenant).filter(plugin=plugin).exists()
    )


def plugin_is_taken(tenant: Tenant, plugin: str) -> bool:
    """Whether any tool of the tenant's is of that plugin."""
    return (
        prompts_of(tenant).filter(slug__startswith=f"{plugin}-").exists()
        or http_tools_of(tenant).filter(slug__startswith=f"{plugin}-").exists()
        or mcp_servers_of(tenant).filter(plugin=plugin).exists()
    )


def webhook_endpoints_of(tenant: Tenant) -> QuerySet[WebhookEndpoint]:
    """The webhook endpoints of a tenant."""
    return WebhookEndpoint.objects.select_related("tenant", "data_key").filter(tenant=tenant)


def webhook_endpoint_of(tenant: Tenant, webhook_id: UUID) -> WebhookEndpoint:
    """One webhook endpoint of a tenant."""
    return existing(webhook_endpoints_of(tenant).filter(id=webhook_id), "webhook endpoint")


def deliveries_of(endpoint: WebhookEndpoint) -> QuerySet[WebhookDelivery]:
    """What was sent to an endpoint, or is to be."""
    return endpoint.deliveries.select_related("event").filter(tenant=endpoint.tenant_id)


def delivery_of(endpoint: WebhookEndpoint, delivery_id: UUID) -> WebhookDelivery:
    """One delivery to an endpoint."""
    return existing(deliveries_of(endpoint).filter(id=delivery_id), "delivery")
