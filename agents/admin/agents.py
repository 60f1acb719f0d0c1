"""Agents of all tenants."""

from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpRequest

from agents.models import Agent
from agents.services.definitions import delete_agent, update_agent
from agents.tool_registry import ToolRegistry, installed_tools
from agents.tool_sources.catalog import tools_of
from tenants.admin.base import ModelForm, ServiceAdmin

if TYPE_CHECKING:
    from django.forms import CheckboxSelectMultiple as UnfoldAdminCheckboxSelectMultipleWidget
else:
    from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget


class AgentForm(ModelForm):
    """An agent, with its tools to tick."""

    tools = forms.MultipleChoiceField(
        widget=UnfoldAdminCheckboxSelectMultipleWidget, required=False
    )

    class Meta:
        model = Agent
        fields = (
            "tenant",
            "slug",
            "name",
            "instructions",
            "prompt",
            "tools",
            "max_steps",
            "operation",
            "prefer",
            "output_schema",
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = [*_available(self.instance), *(self.instance.tools or ())]
        tools = cast("forms.MultipleChoiceField", self.fields["tools"])
        tools.choices = [(name, name) for name in dict.fromkeys(names)]


@admin.register(Agent)
class AgentAdmin(ServiceAdmin):
    """Agents. What a run was created with, no change here reaches."""

    form = AgentForm
    list_display = ("slug", "tenant", "name", "tools", "max_steps", "updated_at")
    list_select_related = ("tenant",)
    search_fields = ("slug", "name", "tenant__slug")
    autocomplete_fields = ("tenant", "prompt")

    def save_model(
        self,
        request: HttpRequest,
        obj: Agent,
        form: Any,  # noqa: ARG002
        change: bool,  # noqa: ARG002, FBT001
    ) -> None:
        """Save through the service, which checks the tools."""
        by = request.user if isinstance(request.user, User) else None
        update_agent(agent=obj, available=_available(obj), values={}, by=by)

    def delete_row(self, row: Agent) -> None:
        """Its runs stay."""
        delete_agent(agent=row)


def _available(agent: Agent) -> ToolRegistry:
    """What the agent's tenant has; for one that is being made, the installation's own tools."""
    return installed_tools() if agent.tenant_id is None else tools_of(agent.tenant)
