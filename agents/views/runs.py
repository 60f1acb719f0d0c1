"""/api/v1/runs"""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import Run, Step
from agents.pages import numbered_page
from agents.selectors import run_of, runs_of
from agents.serializers.answers import ApprovalsInput, ToolOutputsInput
from agents.serializers.runs import (
    CancelledRuns,
    RetryInput,
    RunFilter,
    RunInput,
    RunOutput,
    RunSummary,
    StepOutput,
)
from agents.services.answering import Decision, ToolOutput, decide, submit_tool_outputs
from agents.services.cancelling import cancel_run, cancel_runs
from agents.services.creation import CreatedRun, RunRequest, create_run
from agents.services.retrying import retry_run
from agents.tool_sources.catalog import TenantTools
from tenants.caller import caller_of
from tenants.idempotency import HEADER, idempotency_key_of, idempotent
from tenants.pagination import page_of
from tenants.permissions import RUNS_READ, RUNS_WRITE
from tenants.serializers import validated

PAGE = [OpenApiParameter("after", int), OpenApiParameter("limit", int)]


class RunList(APIView):
    """Runs of the caller's scope."""

    required_permissions: ClassVar = {"GET": RUNS_READ, "POST": RUNS_WRITE}

    @extend_schema(operation_id="runs_list", responses=RunSummary(many=True))
    def get(self, request: Request) -> Response:
        """A page of runs, newest first, without their messages."""
        runs = runs_of(caller_of(request)).defer("messages")
        return Response(page_of(runs, request, summary))

    @extend_schema(parameters=[HEADER], request=RunInput, responses={202: RunOutput})
    def post(self, request: Request) -> Response:
        """Create a run; a worker takes it up at once."""
        caller = caller_of(request)
        return created(
            create_run(
                caller=caller,
                request=RunRequest(**validated(RunInput, request)),
                available=TenantTools(caller.tenant),
                idempotency_key=idempotency_key_of(request),
            )
        )


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


class RunRetry(APIView):
    """A run that is over, done again from one of its model calls."""

    required_permissions: ClassVar = {"POST": RUNS_WRITE}

    @extend_schema(request=RetryInput, responses={202: RunOutput})
    @idempotent
    def post(self, request: Request, run_id: UUID) -> Response:
        """Create a run that goes on from there; what happened before is taken over."""
        caller = caller_of(request)
        run = run_of(caller, run_id)
        step = validated(RetryInput, request).get("step")
        return Response(_whole(retry_run(run=run, caller=caller, from_step=step)), status=202)


class RunsCancel(APIView):
    """The end of many runs at once."""

    required_permissions: ClassVar = {"POST": RUNS_WRITE}

    @extend_schema(operation_id="runs_cancel_many", request=RunFilter, responses=CancelledRuns)
    def post(self, request: Request) -> Response:
        """Cancel the runs of the scope that fit, each as by its own cancel."""
        conditions = validated(RunFilter, request)
        runs = runs_of(caller_of(request)).filter(**conditions)
        cancelled, has_more = cancel_runs(runs=runs)
        return Response({"cancelled": cancelled, "has_more": has_more})


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


def created(new: CreatedRun) -> Response:
    """The answer to a request for a run."""
    headers = {"Idempotent-Replayed": "true"} if new.replayed else {}
    return Response(_whole(new.run), status=202, headers=headers)


def summary(run: Run) -> dict[str, Any]:
    """A run as lists show it."""
    return dict(RunSummary(run).data)


def _whole(run: Run) -> dict[str, Any]:
    return dict(RunOutput(run).data)


def _step(step: Step) -> dict[str, Any]:
    return dict(StepOutput(step).data)
