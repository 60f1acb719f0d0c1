"""/api/v1/runs"""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.idempotency import idempotency_key_of
from agents.models import Event, Run, Step
from agents.pages import numbered_page
from agents.selectors import run_of, runs_of
from agents.serializers.runs import (
    ApprovalsInput,
    EventOutput,
    RunInput,
    RunOutput,
    RunSummary,
    StepOutput,
    ToolOutputsInput,
)
from agents.services.answering import Decision, ToolOutput, decide, submit_tool_outputs
from agents.services.cancelling import cancel_run
from agents.services.creation import RunRequest, create_run
from agents.tool_sources.catalog import TenantTools
from tenants.caller import caller_of
from tenants.pagination import page_of
from tenants.permissions import RUNS_READ, RUNS_WRITE
from tenants.serializers import validated

IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    location=OpenApiParameter.HEADER,
    description="The same key and body again give the same run.",
)
PAGE = [OpenApiParameter("after", int), OpenApiParameter("limit", int)]


class RunList(APIView):
    """Runs of the caller's scope."""

    required_permissions: ClassVar = {"GET": RUNS_READ, "POST": RUNS_WRITE}

    @extend_schema(operation_id="runs_list", responses=RunSummary(many=True))
    def get(self, request: Request) -> Response:
        """A page of runs, newest first, without their messages."""
        runs = runs_of(caller_of(request)).defer("messages")
        return Response(page_of(runs, request, _summary))

    @extend_schema(parameters=[IDEMPOTENCY_KEY], request=RunInput, responses={202: RunOutput})
    def post(self, request: Request) -> Response:
        """Create a run; a worker takes it up at once."""
        caller = caller_of(request)
        created = create_run(
            caller=caller,
            request=RunRequest(**validated(RunInput, request)),
            available=TenantTools(caller.tenant),
            idempotency_key=idempotency_key_of(request),
        )
        headers = {"Idempotent-Replayed": "true"} if created.replayed else {}
        return Response(_whole(created.run), status=202, headers=headers)


class RunDetail(APIView):
    """One run."""

    required_permissions: ClassVar = {"GET": RUNS_READ}

    @extend_schema(responses=RunOutput)
    def get(self, request: Request, run_id: UUID) -> Response:
        """Show where a run stands."""
        return Response(_whole(run_of(caller_of(request), run_id)))


class RunCancel(APIView):
    """The end of a run that is no longer wanted."""

    required_permissions: ClassVar = {"POST": RUNS_WRITE}

    @extend_schema(request=None, responses=RunOutput)
    def post(self, request: Request, run_id: UUID) -> Response:
        """Cancel a run: at once, or before its next step. A run that is over stays as it is."""
        run = run_of(caller_of(request), run_id)
        return Response(_whole(cancel_run(run_id=run.id)))


class RunApprovals(APIView):
    """Decisions about tool calls that wait for approval."""

    required_permissions: ClassVar = {"POST": RUNS_WRITE}

    @extend_schema(request=ApprovalsInput, responses=RunOutput)
    def post(self, request: Request, run_id: UUID) -> Response:
        """Approve, edit or reject calls; the run goes on once nothing it waits for is missing."""
        run = run_of(caller_of(request), run_id)
        given = validated(ApprovalsInput, request)["approvals"]
        decisions = [Decision(**each) for each in given]
        return Response(_whole(decide(run_id=run.id, decisions=decisions)))


class RunToolOutputs(APIView):
    """Outputs of tools that the client runs."""

    required_permissions: ClassVar = {"POST": RUNS_WRITE}

    @extend_schema(request=ToolOutputsInput, responses=RunOutput)
    def post(self, request: Request, run_id: UUID) -> Response:
        """Submit outputs, or word of a call whose outcome is unknown; some now, others later."""
        run = run_of(caller_of(request), run_id)
        given = validated(ToolOutputsInput, request)["tool_outputs"]
        outputs = [ToolOutput(**each) for each in given]
        return Response(_whole(submit_tool_outputs(run_id=run.id, outputs=outputs)))


class RunSteps(APIView):
    """What a run did."""

    required_permissions: ClassVar = {"GET": RUNS_READ}

    @extend_schema(operation_id="run_steps_list", parameters=PAGE, responses=StepOutput(many=True))
    def get(self, request: Request, run_id: UUID) -> Response:
        """The calls of models and tools, in order."""
        run = run_of(caller_of(request), run_id)
        return Response(numbered_page(run.steps.all(), request, "number", _step))


class RunEvents(APIView):
    """What happened to a run."""

    required_permissions: ClassVar = {"GET": RUNS_READ}

    @extend_schema(
        operation_id="run_events_list", parameters=PAGE, responses=EventOutput(many=True)
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        """The log, in order; ``after`` is the last sequence_number seen."""
        run = run_of(caller_of(request), run_id)
        return Response(numbered_page(run.events.all(), request, "sequence_number", _event))


def _summary(run: Run) -> dict[str, Any]:
    return dict(RunSummary(run).data)


def _whole(run: Run) -> dict[str, Any]:
    return dict(RunOutput(run).data)


def _step(step: Step) -> dict[str, Any]:
    return dict(StepOutput(step).data)


def _event(event: Event) -> dict[str, Any]:
    return dict(EventOutput(event).data)
