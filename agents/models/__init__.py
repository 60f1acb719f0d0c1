"""What tenants run."""

from agents.models.agents import Agent, AgentVersion
from agents.models.events import Event
from agents.models.http_tools import HttpTool
from agents.models.mcp_servers import McpServer
from agents.models.prompts import PromptFunction, PromptVersion
from agents.models.retention import RunRetention
from agents.models.runs import Run
from agents.models.schedules import Schedule
from agents.models.steps import Step
from agents.models.threads import Thread, ThreadMessage
from agents.models.webhooks import WebhookDelivery, WebhookEndpoint

__all__ = [
    "Agent",
    "AgentVersion",
    "Event",
    "HttpTool",
    "McpServer",
    "PromptFunction",
    "PromptVersion",
    "Run",
    "RunRetention",
    "Schedule",
    "Step",
    "Thread",
    "ThreadMessage",
    "WebhookDelivery",
    "WebhookEndpoint",
]
