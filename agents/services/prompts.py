"""Prompt functions: defined, changed by adding a version, tried out, removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max, RestrictedError

from agents.models import PromptFunction, PromptVersion
from agents.services.tool_names import claim_name
from agents.tool_registry import ToolRegistry
from agents.tool_sources.prompts import preview, split
from llmbroker import BadArgumentsError, PromptTemplate, TemplateRenderError
from llmbroker.prompts.errors import TemplateSyntaxError
from llmbroker.prompts.nodes import Call
from llmbroker.prompts.segments import RenderedPrompt
from llmbroker.prompts.variables import declaration_of
from tenants.errors import Conflict, InvalidInput
from tenants.models import Tenant
from tenants.services.integrity import conflict_if


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptText:
    """What one version says. ``effect`` None: pure if it calls nothing, else once."""

    template: str | Sequence[Mapping[str, str]]
    description: str = ""
    variables: Mapping[str, Any] | None = None
    tools: Sequence[str] = ()
    effect: str | None = None


@transaction.atomic
def create_prompt(
    *,
    tenant: Tenant,
    slug: str,
    text: PromptText,
    available: ToolRegistry,
    created_by: User | None = None,
) -> PromptVersion:
    """Define a prompt function by its first version. Raises InvalidInput and Conflict (slug)."""
    claim_name(tenant=tenant, name=slug)
    prompt = PromptFunction.objects.create(tenant=tenant, slug=slug)
    return _new_version(prompt, text, available, created_by)


@transaction.atomic
def add_version(
    *,
    prompt: PromptFunction,
    text: PromptText,
    available: ToolRegistry,
    created_by: User | None = None,
) -> PromptVersion:
    """What the prompt says from now on. Runs that exist go on with what it said before."""
    prompt = PromptFunction.objects.select_for_update().get(pk=prompt.pk)
    return _new_version(prompt, text, available, created_by)


def delete_prompt(*, prompt: PromptFunction) -> None:
    """Remove a prompt with all versions. Conflict while agents take their instructions from it."""
    try:
        prompt.delete()
    except RestrictedError:
        agents = ", ".join(prompt.agents.order_by("slug").values_list("slug", flat=True))
    else:
        return
    raise Conflict(f"Agents take their instructions from it: {agents}.", code="prompt_in_use")


def render(
    *, version: PromptVersion, values: Mapping[str, Any], available: ToolRegistry
) -> RenderedPrompt:
    """What the version would send for these values, piece by piece. Raises InvalidInput."""
    try:
        return preview(version, values, available)
    except BadArgumentsError as error:
        problem = f"Variables do not fit: {error}."
    except TemplateRenderError as error:
        problem = f"The prompt cannot be rendered: {error}"
    raise InvalidInput(problem, code="render_failed", param="variables")


def _new_version(
    prompt: PromptFunction, text: PromptText, available: ToolRegistry, created_by: User | None
) -> PromptVersion:
    _check(prompt.slug, text, available)
    last = prompt.versions.aggregate(last=Max("number"))["last"] or 0
    with conflict_if("prompt_version_number_once", "Somebody else added a version just now."):
        return PromptVersion.objects.create(
            prompt=prompt,
            number=last + 1,
            template=text.template,
            description=text.description,
            variables=text.variables,
            tools=list(text.tools),
            effect=text.effect,
            created_by=created_by,
        )


def _check(slug: str, text: PromptText, available: ToolRegistry) -> None:
    try:
        template = PromptTemplate(text.template)
    except (TemplateSyntaxError, ValueError) as error:
        raise InvalidInput(f"{error}.", code="template_syntax", param="template") from None
    try:
        declaration_of(text.variables, template.variables)
    except ValueError as error:
        raise InvalidInput(f"{error}.", param="variables") from None
    available.require(text.tools)
    plugin, _ = split(slug)
    known = {slug, *available}
    for call in template.calls:
        if _names_of(call, plugin, known).isdisjoint(known):
            raise InvalidInput(
                f"{call} calls a function that does not exist. Available:"
                f" {', '.join(sorted(name.replace('-', '.') for name in available))}.",
                code="unknown_tool",
                param="template",
            )


def _names_of(call: Call, plugin: str, known: set[str]) -> set[str]:
    """The tools that a call in a template of that plugin may mean."""
    if call.plugin:
        return {f"{call.plugin}-{call.function}"}
    elsewhere = {name for name in known if split(name)[1] == call.function}
    own = f"{plugin}-{call.function}"
    return {own} if own in known else elsewhere if len(elsewhere) == 1 else set()
