"""The journal over HTTP."""

from datetime import datetime, timedelta
from typing import Any, ClassVar
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from journal import selectors, services
from journal.models import Call
from journal.moments import EPOCH
from journal.serializers import (
    CallPageSerializer,
    CallSerializer,
    CallsQuery,
    LevelQuery,
    RatingInput,
    RatingSerializer,
    StatsQuery,
    StatsSerializer,
)
from journal.statistics import Period, statistics_of
from tenants.caller import caller_of
from tenants.errors import NotFound
from tenants.pagination import page_of
from tenants.roles import CHAT_WRITE, JOURNAL_READ
from tenants.serializers import validated
from tenants.serializers_base import StrictSerializer

FILTERS = {"call_id": "id"}
PAGING = {"limit", "after"}
STATS_PERIOD = timedelta(days=30)


class CallsView(APIView):
    """Every attempt at a provider."""

    required_permissions: ClassVar = {"GET": JOURNAL_READ}

    @extend_schema(operation_id="calls_list", parameters=[CallsQuery], responses=CallPageSerializer)
    def get(self, request: Request) -> Response:
        """A page of calls, newest first."""
        query = _query(CallsQuery, request)
        calls = selectors.reach_of(caller_of(request), query.pop("level")).calls()
        filters = {FILTERS.get(name, name): query[name] for name in query if name not in PAGING}
        found = selectors.with_score(selectors.narrowed(calls, **filters))
        return Response(page_of(found, request, _represented))


class CallView(APIView):
    """One attempt."""

    required_permissions: ClassVar = {"GET": JOURNAL_READ}

    @extend_schema(parameters=[LevelQuery], responses=CallSerializer)
    def get(self, request: Request, call_id: UUID) -> Response:
        """The call, with its newest rating."""
        query = _query(LevelQuery, request)
        calls = selectors.reach_of(caller_of(request), query["level"]).calls()
        call = selectors.with_score(calls).filter(id=call_id).first()
        if call is None:
            raise NotFound("No such call.")
        return Response(_represented(call))


class RatingsView(APIView):
    """What people thought of answers."""

    required_permissions: ClassVar = {"POST": CHAT_WRITE}

    @extend_schema(request=RatingInput, responses={201: RatingSerializer})
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
        day or hour; 30 days unless told."""
        query = _query(StatsQuery, request)
        level, interval = query.pop("level"), query.pop("interval")
        until = query.pop("until", None)
        end = until or timezone.now()
        period = Period(query.pop("since", None) or _start_of_period(end), end, interval)
        figures = statistics_of(selectors.reach_of(caller_of(request), level), period, **query)
        asked = {"level": level, "interval": interval, "since": period.since, "until": until}
        return Response(StatsSerializer({**asked, **vars(figures)}).data)


def _start_of_period(end: datetime) -> datetime:
    return max(end, EPOCH + STATS_PERIOD) - STATS_PERIOD


def _query(form: type[StrictSerializer], request: Request) -> dict[str, Any]:
    serializer = form(data=request.query_params.dict())
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


def _represented(call: Call) -> dict[str, Any]:
    return CallSerializer(call).data
