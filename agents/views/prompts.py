"""/api/v1/prompts"""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import PromptVersion
from agents.pages import numbered_page
from agents.selectors import prompt_of, version_of, versions_in_use
from agents.serializers.prompts import (
    PromptInput,
    RenderInput,
    RenderOutput,
    VersionInput,
    VersionOutput,
)
from agents.services.prompts import PromptText, add_version, create_prompt, delete_prompt, render
from agents.tool_sources.catalog import tools_of
from tenants.caller import caller_of
from tenants.idempotency import idempotent
from tenants.pagination import page_of
from tenants.permissions import ADMIN, RUNS_READ
from tenants.serializers import validated


class PromptList(APIView):
    """Prompt functions of the tenant: all its runs may call them, its admins define them."""

    required_permissions: ClassVar = {"GET": RUNS_READ, "POST": ADMIN}

    @extend_schema(operation_id="prompts_list", responses=VersionOutput(many=True))
    def get(self, request: Request) -> Response:
        """A page of prompt functions in their newest versions, those changed last first."""
        in_use = versions_in_use(caller_of(request).tenant)
        return Response(page_of(in_use, request, _represent))

    @extend_schema(request=PromptInput, responses={201: VersionOutput})
    @idempotent
    def post(self, request: Request) -> Response:
        """Define a prompt function."""
        caller = caller_of(request)
        values = validated(PromptInput, request)
        version = create_prompt(
            tenant=caller.tenant,
            slug=values.pop("slug"),
            text=PromptText(**values),
            available=tools_of(caller.tenant),
            created_by=caller.user,
        )
        return Response(_represent(version), status=201)


class PromptDetail(APIView):
    """One prompt function."""

    required_permissions: ClassVar = {"GET": RUNS_READ, "DELETE": ADMIN}

    @extend_schema(responses=VersionOutput)
    def get(self, request: Request, slug: str) -> Response:
        """Show a prompt function in its newest version."""
        return Response(_represent(version_of(prompt_of(caller_of(request).tenant, slug))))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str) -> Response:
        """Delete a prompt function with all its versions."""
        delete_prompt(prompt=prompt_of(caller_of(request).tenant, slug))
        return Response(status=204)


class PromptVersions(APIView):
    """What a prompt function said over time."""

    required_permissions: ClassVar = {"GET": RUNS_READ, "POST": ADMIN}

    @extend_schema(operation_id="prompt_versions_list", responses=VersionOutput(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The versions, oldest first."""
        versions = prompt_of(caller_of(request).tenant, slug).versions.select_related("prompt")
        return Response(numbered_page(versions, request, "number", _represent))

    @extend_schema(request=VersionInput, responses={201: VersionOutput})
    @idempotent
    def post(self, request: Request, slug: str) -> Response:
        """Add a version, which is in use from now on. Runs that exist keep theirs."""
        caller = caller_of(request)
        version = add_version(
            prompt=prompt_of(caller.tenant, slug),
            text=PromptText(**validated(VersionInput, request)),
            available=tools_of(caller.tenant),
            created_by=caller.user,
        )
        return Response(_represent(version), status=201)


class PromptVersionDetail(APIView):
    """One version of a prompt function."""

    required_permissions: ClassVar = {"GET": RUNS_READ}

    @extend_schema(responses=VersionOutput)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """Show a version."""
        return Response(_represent(version_of(prompt_of(caller_of(request).tenant, slug), number)))


class PromptRender(APIView):
    """A prompt function tried out."""

    required_permissions: ClassVar = {"POST": RUNS_READ}

    @extend_schema(request=RenderInput, responses=RenderOutput)
    def post(self, request: Request, slug: str) -> Response:
        """The messages that would be sent, each piece with its origin. No model is called."""
        tenant = caller_of(request).tenant
        values = validated(RenderInput, request)
        version = version_of(prompt_of(tenant, slug), values.get("version"))
        rendered = render(
            version=version, values=values.get("variables", {}), available=tools_of(tenant)
        )
        return Response(RenderOutput(rendered).data)


def _represent(version: PromptVersion) -> dict[str, Any]:
    return dict(VersionOutput(version).data)
