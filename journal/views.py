"""The journal over HTTP."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, ClassVar
from uuid import UUID

from django.core.handlers.asgi import ASGIRequest
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from journal import selectors, services
from journal.export import as_csv, as_json_lines
from journal.models import Call
from journal.payloads import open_payload
from journal.serializers import (
    CallFiltersQuery,
    CallPageSerializer,
    CallSerializer,
    CallsQuery,
    LevelQuery,
    PayloadSerializer,
    RatingInput,
    RatingSerializer,
    StatsQuery,
    StatsSerializer,
)
from journal.statistics import Period, last_days, statistics_of
from tenants.caller import caller_of
from tenants.database import in_thread
from tenants.errors import NotFound
from tenants.idempotency import idempotent
from tenants.pagination import page_of
from tenants.roles import CHAT_WRITE, JOURNAL_READ
from tenants.selectors import existing
from tenants.serializers import validated
from tenants.serializers_base import StrictSerializer

STATS_DAYS = 30


class CallsView(APIView):
    """Every attempt at a provider."""

    required_permissions: ClassVar = {"GET": JOURNAL_READ}

    @extend_schema(operation_id="calls_list", parameters=[CallsQuery], responses=CallPageSerializer)
    def get(self, request: Request) -> Response:
        """A page of calls, newest first."""
        query = _query(CallsQuery, request)
        calls = selectors.reach_of(caller_of(request), query.pop("level")).calls()
        found = selectors.with_score(selectors.narrowed(calls, **_filters(query)))
        return Response(page_of(found, request, _represented))


class CSVExportView(APIView):
    """Every attempt at a provider as CSV, in which no cell is a formula."""

    required_permissions: ClassVar = {"GET": JOURNAL_READ}

    @extend_schema(parameters=[CallFiltersQuery], responses={(200, "text/csv"): OpenApiTypes.STR})
    def get(self, request: Request) -> StreamingHttpResponse:
        """The calls that match, newest first, streamed: as many as there are."""
        return _exported(request, as_csv, "text/csv; charset=utf-8")


class JSONLinesExportView(APIView):
    """Every attempt at a provider as JSON lines."""

    required_permissions: ClassVar = {"GET": JOURNAL_READ}

    @extend_schema(
        parameters=[CallFiltersQuery], responses={(200, "application/x-ndjson"): OpenApiTypes.STR}
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """The calls that match, newest first, streamed: as many as there are."""
        return _exported(request, as_json_lines, "application/x-ndjson")


class CallView(APIView):
    """One attempt."""

    required_permissions: ClassVar = {"GET": JOURNAL_READ}

    @extend_schema(parameters=[LevelQuery], responses=CallSerializer)
    def get(self, request: Request, call_id: UUID) -> Response:
        """The call, with its newest rating."""
        query = _query(LevelQuery, request)
        calls = selectors.reach_of(caller_of(request), query["level"]).calls()
        call = existing(selectors.with_score(calls).filter(id=call_id), "call")
        return Response(_represented(call))


class PayloadView(APIView):
    """What one call said and was told, where that is kept."""

    required_permissions: ClassVar = {"GET": JOURNAL_READ}

    @extend_schema(parameters=[LevelQuery], responses=PayloadSerializer)
    def get(self, request: Request, call_id: UUID) -> Response:
        """The messages and the answer."""
        query = _query(LevelQuery, request)
        reach = selectors.reach_of(caller_of(request), query["level"])
        payload = reach.payloads().filter(id=call_id).first()
        if payload is None:
            raise NotFound("Nothing is kept of what such a call said.")
        return Response({"object": "payload", "call_id": str(call_id), **open_payload(payload)})


class RatingsView(APIView):
    """What people thought of answers."""

    required_permissions: ClassVar = {"POST": CHAT_WRITE}

    @extend_schema(request=RatingInput, responses={201: RatingSerializer})
    @idempotent
    def post(self, request: Request) -> Response:
        """Rate an answered call of this scope; its newest rating counts."""
        given = validated(RatingInput, request)
        caller = caller_of(request)
        rating = services.rate(scope_id=caller.scope.id, created_by=caller.user, **given)
        return Response(RatingSerializer(rating).data, status=201)


class StatsView(APIView):
    """Figures over many calls."""

    required_permissions: ClassVar = {"GET": JOURNAL_READ}

    @extend_schema(parameters=[StatsQuery], responses=StatsSerializer)
    def get(self, request: Request) -> Response:
        """Calls, errors, tokens, cost and latency: in all, by model, operation and key, and by
        day or hour; today and 30 days before unless told."""
        query = _query(StatsQuery, request)
        level, interval = query.pop("level"), query.pop("interval")
        until, since = query.pop("until", None), query.pop("since", None)
        usual = last_days(STATS_DAYS, until or timezone.now())
        period = Period(since or usual.since, usual.until, interval)
        figures = statistics_of(selectors.reach_of(caller_of(request), level), period, **query)
        asked = {"level": level, "interval": interval, "since": period.since, "until": until}
        return Response(StatsSerializer({**asked, **vars(figures)}).data)


def _filters(query: dict[str, Any]) -> dict[str, Any]:
    """What narrows the calls, as selectors name it."""
    names = {"call_id": "id"}
    return {names.get(name, name): query[name] for name in query if name not in {"limit", "after"}}


def _exported(
    request: Request, written: Callable[[QuerySet[Call]], Iterator[bytes]], content_type: str
) -> StreamingHttpResponse:
    query = _query(CallFiltersQuery, request)
    calls = selectors.reach_of(caller_of(request), query.pop("level")).calls()
    pages = written(selectors.narrowed(calls, **_filters(query)))
    return StreamingHttpResponse(_body(request, pages), content_type=content_type)


def _body(request: Request, pages: Iterator[bytes]) -> Iterator[bytes] | AsyncIterator[bytes]:
    """The pages, read in a database thread where an event loop serves them."""
    return _read_in_thread(pages) if isinstance(request._request, ASGIRequest) else pages  # noqa: SLF001


async def _read_in_thread(pages: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (page := await in_thread(next, pages, b"")) != b"":
        yield page


def _query(form: type[StrictSerializer], request: Request) -> dict[str, Any]:
    serializer = form(data=request.query_params.dict())
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


def _represented(call: Call) -> dict[str, Any]:
    return CallSerializer(call).data
