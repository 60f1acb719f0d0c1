"""/api/v1/runs/{id}/events: the log of a run, in pages or as it is written."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import Event
from agents.pages import MAX_NUMBER, integer, numbered_page
from agents.selectors import events_of, run_of
from agents.serializers.runs import EventOutput
from agents.streams.frames import HELLO
from agents.streams.reading import page_after
from agents.streams.sending import event_stream
from tenants.caller import Caller, caller_of
from tenants.errors import InvalidInput
from tenants.handover import Pieces, hand_over
from tenants.pagination import whole_number
from tenants.permissions import RUNS_READ

STREAM = "text/event-stream"

# What keeps proxies and middleware from holding small pieces back (nginx, GZipMiddleware, CDNs).
AT_ONCE = {
    "Content-Type": f"{STREAM}; charset=utf-8",
    "Cache-Control": "no-store, no-transform",
    "X-Accel-Buffering": "no",
    "Content-Encoding": "identity",
}


class _JSON(BaseContentNegotiation):
    """Pages and errors are JSON, also for who would rather have a stream."""

    def select_parser(self, request: Request, parsers: Any) -> Any:  # noqa: ARG002
        """The only one."""
        return parsers[0]

    def select_renderer(
        self,
        request: Request,  # noqa: ARG002 - DRF's signature
        renderers: Any,
        format_suffix: str | None = None,  # noqa: ARG002
    ) -> Any:
        """The only one."""
        return renderers[0], renderers[0].media_type


class RunEvents(APIView):
    """What happened to a run."""

    required_permissions: ClassVar = {"GET": RUNS_READ}
    content_negotiation_class = _JSON

    @extend_schema(
        operation_id="run_events_list",
        parameters=[
            OpenApiParameter("after", int, description="The last sequence_number seen."),
            OpenApiParameter("starting_after", int, description="The same."),
            OpenApiParameter("limit", int),
            OpenApiParameter(
                "Last-Event-ID",
                int,
                OpenApiParameter.HEADER,
                description="The same, for a stream that is taken up again.",
            ),
        ],
        responses={
            (200, "application/json"): EventOutput(many=True),
            (200, STREAM): OpenApiTypes.STR,
        },
    )
    def get(self, request: Request, run_id: UUID) -> HttpResponseBase:
        """The log, in order; with ``Accept: text/event-stream`` as it is written, to its end."""
        caller = caller_of(request)
        run = run_of(caller, run_id)
        after = _after(request)
        # DRF's request hands its unknown attributes on to Django's.
        if request.get_preferred_type(["application/json", STREAM]) == STREAM:
            return _streamed(request._request, caller, run_id, after)  # noqa: SLF001 - documented
        return Response(numbered_page(events_of(run.id), request, "sequence_number", _event, after))


def _streamed(request: HttpRequest, caller: Caller, run_id: UUID, after: int) -> HttpResponseBase:
    """The stream; where the server cannot go on with it, what is stored, for the client to return
    for more."""
    if hand_over(request, event_stream(caller, run_id, after)):
        return StreamingHttpResponse(_nothing(), headers=AT_ONCE)
    stored = [frame.text for frame in page_after(caller, run_id, after).frames]
    return HttpResponse(b"".join([HELLO, *stored]), headers=AT_ONCE)


async def _nothing() -> Pieces:
    """A head without a body."""
    pieces: tuple[bytes, ...] = ()
    for piece in pieces:
        yield piece


def _after(request: Request) -> int:
    """The last event that the client has: a browser that comes back says so in a header."""
    text = request.headers.get("Last-Event-ID")
    if text is not None:
        number = whole_number(text, 0, MAX_NUMBER)
        if number is None:
            raise InvalidInput("Last-Event-ID is a sequence_number.", param="Last-Event-ID")
        return number
    name = "after" if "after" in request.query_params else "starting_after"
    return integer(request, name, 0, 0, MAX_NUMBER)


def _event(event: Event) -> dict[str, Any]:
    return dict(EventOutput(event).data)
