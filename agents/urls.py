"""Routes of this app, under /api/v1/."""

from django.urls import path

from agents.views.agents import AgentDetail, AgentList
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
    RunEvents,
    RunList,
    RunSteps,
    RunToolOutputs,
)
from agents.views.tools import ToolList

urlpatterns = [
    path("agents", AgentList.as_view(), name="agents"),
    path("agents/<uuid:agent_id>", AgentDetail.as_view(), name="agent"),
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
    path("prompts/<str:slug>", PromptDetail.as_view(), name="prompt"),
    path("prompts/<str:slug>/versions", PromptVersions.as_view(), name="prompt-versions"),
    path(
        "prompts/<str:slug>/versions/<int:number>",
        PromptVersionDetail.as_view(),
        name="prompt-version",
    ),
    path("prompts/<str:slug>/render", PromptRender.as_view(), name="prompt-render"),
    path("tools", ToolList.as_view(), name="tools"),
    path("runs", RunList.as_view(), name="runs"),
    path("runs/<uuid:run_id>", RunDetail.as_view(), name="run"),
    path("runs/<uuid:run_id>/steps", RunSteps.as_view(), name="run-steps"),
    path("runs/<uuid:run_id>/events", RunEvents.as_view(), name="run-events"),
    path("runs/<uuid:run_id>/approvals", RunApprovals.as_view(), name="run-approvals"),
    path(
        "runs/<uuid:run_id>/submit_tool_outputs", RunToolOutputs.as_view(), name="run-tool-outputs"
    ),
    path("runs/<uuid:run_id>/cancel", RunCancel.as_view(), name="run-cancel"),
]
