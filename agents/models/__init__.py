"""What tenants run."""

from agents.models.agents import Agent
from agents.models.events import Event
from agents.models.http_tools import HttpTool
from agents.models.mcp_servers import McpServer
from agents.models.prompts import PromptFunction, PromptVersion
from agents.models.runs import Run
from agents.models.steps import Step
from agents.models.webhooks import WebhookDelivery, WebhookEndpoint

__all__ = [
    "Agent",
    "Event",
    "HttpTool",
    "McpServer",
    "PromptFunction",
    "PromptVersion",
    "Run",
    "Step",
    "WebhookDelivery",
    "WebhookEndpoint",
]
