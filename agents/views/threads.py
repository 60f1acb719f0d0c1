"""/api/v1/threads"""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import Thread, ThreadMessage
from agents.pages import numbered_page
from agents.selectors import runs_of, thread_of, threads_of
from agents.serializers.runs import RunOutput, RunSummary, ThreadRunInput
from agents.serializers.threads import (
    ThreadInput,
    ThreadMessageInput,
    ThreadMessageOutput,
    ThreadOutput,
)
from agents.services.creation import RunRequest, create_run
from agents.services.threads import create_thread, delete_thread, say
from agents.tool_sources.catalog import TenantTools
from agents.views.runs import PAGE, created, summary
from tenants.caller import caller_of
from tenants.idempotency import HEADER, idempotency_key_of, idempotent
from tenants.pagination import page_of
from tenants.permissions import RUNS_READ, RUNS_WRITE
from tenants.serializers import validated


class ThreadList(APIView):
    """Threads of the caller's scope."""

    required_permissions: ClassVar = {"GET": RUNS_READ, "POST": RUNS_WRITE}

    @extend_schema(operation_id="threads_list", responses=ThreadOutput(many=True))
    def get(self, request: Request) -> Response:
        """A page of threads, newest first."""
        return Response(page_of(threads_of(caller_of(request)), request, _thread))

    @extend_schema(request=ThreadInput, responses={201: ThreadOutput})
    @idempotent
    def post(self, request: Request) -> Response:
        """Begin a thread."""
        values = validated(ThreadInput, request)
        return Response(_thread(create_thread(caller=caller_of(request), **values)), status=201)


class ThreadDetail(APIView):
    """One thread."""

    required_permissions: ClassVar = {"GET": RUNS_READ, "DELETE": RUNS_WRITE}

    @extend_schema(responses=ThreadOutput)
    def get(self, request: Request, thread_id: UUID) -> Response:
        """Show a thread."""
        return Response(_thread(thread_of(caller_of(request), thread_id)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, thread_id: UUID) -> Response:
        """Delete a thread; its runs stay."""
        delete_thread(thread=thread_of(caller_of(request), thread_id))
        return Response(status=204)


class ThreadMessages(APIView):
    """What is said in a thread."""

    required_permissions: ClassVar = {"GET": RUNS_READ, "POST": RUNS_WRITE}

    @extend_schema(
        operation_id="thread_messages_list",
        parameters=PAGE,
        responses=ThreadMessageOutput(many=True),
    )
    def get(self, request: Request, thread_id: UUID) -> Response:
        """The messages, in order; ``after`` is the last number seen."""
        thread = thread_of(caller_of(request), thread_id)
        return Response(numbered_page(thread.messages.all(), request, "number", _message))

    @extend_schema(request=ThreadMessageInput, responses={201: ThreadMessageOutput})
    @idempotent
    def post(self, request: Request, thread_id: UUID) -> Response:
        """Say something, which the thread's next run reads."""
        thread = thread_of(caller_of(request), thread_id)
        message = validated(ThreadMessageInput, request)["message"]
        return Response(_message(say(thread=thread, message=message)), status=201)


class ThreadRuns(APIView):
    """The runs of a thread."""

    required_permissions: ClassVar = {"GET": RUNS_READ, "POST": RUNS_WRITE}

    @extend_schema(operation_id="thread_runs_list", responses=RunSummary(many=True))
    def get(self, request: Request, thread_id: UUID) -> Response:
        """A page of runs, newest first."""
        caller = caller_of(request)
        runs = runs_of(caller).filter(thread=thread_of(caller, thread_id)).defer("messages")
        return Response(page_of(runs, request, summary))

    @extend_schema(parameters=[HEADER], request=ThreadRunInput, responses={202: RunOutput})
    def post(self, request: Request, thread_id: UUID) -> Response:
        """Create a run that reads the thread, and says in it what it answers."""
        caller = caller_of(request)
        thread = thread_of(caller, thread_id)
        return created(
            create_run(
                caller=caller,
                request=RunRequest(thread=thread.id, **validated(ThreadRunInput, request)),
                available=TenantTools(caller.tenant),
                idempotency_key=idempotency_key_of(request),
            )
        )


def _thread(thread: Thread) -> dict[str, Any]:
    return dict(ThreadOutput(thread).data)


def _message(message: ThreadMessage) -> dict[str, Any]:
    return dict(ThreadMessageOutput(message).data)
