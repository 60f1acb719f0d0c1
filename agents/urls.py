"""Routes of this app, under /api/v1/."""

from django.urls import path

from agents.views.agents import AgentDetail, AgentList, AgentVersionRestore, AgentVersions
from agents.views.events import RunEvents
from agents.views.http_tools import HttpToolDetail, HttpToolList, HttpToolSecret
from agents.views.mcp_servers import McpServerDetail, McpServerList, McpServerRefresh
from agents.views.prompts import (
    PromptDetail,
    PromptList,
    PromptRender,
    PromptVersionDetail,
    PromptVersions,
)
from agents.views.runs import (
    RunApprovals,
    RunCancel,
    RunDetail,
    RunList,
    RunRetry,
    RunsCancel,
    RunSteps,
    RunToolOutputs,
)
from agents.views.schedules import ScheduleDetail, ScheduleList
from agents.views.threads import ThreadDetail, ThreadList, ThreadMessages, ThreadRuns
from agents.views.tools import ToolList
from agents.views.webhooks import (
    WebhookDeliveries,
    WebhookDeliveryReplay,
    WebhookEndpointDetail,
    WebhookEndpointList,
    WebhookEndpointSecret,
)

urlpatterns = [
    path("agents", AgentList.as_view(), name="agents"),
    path("agents/<uuid:agent_id>", AgentDetail.as_view(), name="agent"),
    path("agents/<uuid:agent_id>/versions", AgentVersions.as_view(), name="agent-versions"),
    path(
        "agents/<uuid:agent_id>/versions/<int:number>/restore",
        AgentVersionRestore.as_view(),
        name="agent-version-restore",
    ),
    path("http_tools", HttpToolList.as_view(), name="http-tools"),
    path("http_tools/<uuid:tool_id>", HttpToolDetail.as_view(), name="http-tool"),
    path("http_tools/<uuid:tool_id>/secret", HttpToolSecret.as_view(), name="http-tool-secret"),
    path("mcp_servers", McpServerList.as_view(), name="mcp-servers"),
    path("mcp_servers/<uuid:server_id>", McpServerDetail.as_view(), name="mcp-server"),
    path(
        "mcp_servers/<uuid:server_id>/refresh",
        McpServerRefresh.as_view(),
        name="mcp-server-refresh",
    ),
    path("prompts", PromptList.as_view(), name="prompts"),
    path("prompts/<slug:slug>", PromptDetail.as_view(), name="prompt"),
    path("prompts/<slug:slug>/versions", PromptVersions.as_view(), name="prompt-versions"),
    path(
        "prompts/<slug:slug>/versions/<int:number>",
        PromptVersionDetail.as_view(),
        name="prompt-version",
    ),
    path("prompts/<slug:slug>/render", PromptRender.as_view(), name="prompt-render"),
    path("tools", ToolList.as_view(), name="tools"),
    path("runs", RunList.as_view(), name="runs"),
    path("runs/cancel", RunsCancel.as_view(), name="runs-cancel"),
    path("runs/<uuid:run_id>", RunDetail.as_view(), name="run"),
    path("runs/<uuid:run_id>/steps", RunSteps.as_view(), name="run-steps"),
    path("runs/<uuid:run_id>/events", RunEvents.as_view(), name="run-events"),
    path("runs/<uuid:run_id>/approvals", RunApprovals.as_view(), name="run-approvals"),
    path(
        "runs/<uuid:run_id>/submit_tool_outputs", RunToolOutputs.as_view(), name="run-tool-outputs"
    ),
    path("runs/<uuid:run_id>/retry", RunRetry.as_view(), name="run-retry"),
    path("runs/<uuid:run_id>/cancel", RunCancel.as_view(), name="run-cancel"),
    path("schedules", ScheduleList.as_view(), name="schedules"),
    path("schedules/<uuid:schedule_id>", ScheduleDetail.as_view(), name="schedule"),
    path("threads", ThreadList.as_view(), name="threads"),
    path("threads/<uuid:thread_id>", ThreadDetail.as_view(), name="thread"),
    path("threads/<uuid:thread_id>/messages", ThreadMessages.as_view(), name="thread-messages"),
    path("threads/<uuid:thread_id>/runs", ThreadRuns.as_view(), name="thread-runs"),
    path("webhook_endpoints", WebhookEndpointList.as_view(), name="webhook-endpoints"),
    path(
        "webhook_endpoints/<uuid:webhook_id>",
        WebhookEndpointDetail.as_view(),
        name="webhook-endpoint",
    ),
    path(
        "webhook_endpoints/<uuid:webhook_id>/secret",
        WebhookEndpointSecret.as_view(),
        name="webhook-endpoint-secret",
    ),
    path(
        "webhook_endpoints/<uuid:webhook_id>/deliveries",
        WebhookDeliveries.as_view(),
        name="webhook-deliveries",
    ),
    path(
        "webhook_endpoints/<uuid:webhook_id>/deliveries/<uuid:delivery_id>/replay",
        WebhookDeliveryReplay.as_view(),
        name="webhook-delivery-replay",
    ),
]
