"""The app that knows what tenants run in the background."""

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    """Agents, tools, runs, threads, schedules, webhooks."""

    name = "agents"
