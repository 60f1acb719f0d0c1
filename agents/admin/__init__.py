"""The admin site's pages for agents and runs, for the people who run the installation."""

from agents.admin import agents, prompts, runs, schedules, tools, webhooks

__all__ = ["agents", "prompts", "runs", "schedules", "tools", "webhooks"]
