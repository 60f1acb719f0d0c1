"""/api/v1/schedules"""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import Schedule
from agents.selectors import schedule_of, schedules_of
from agents.serializers.schedules import ScheduleInput, ScheduleOutput
from agents.services.schedules import create_schedule, delete_schedule, update_schedule
from tenants.caller import caller_of
from tenants.idempotency import idempotent
from tenants.pagination import page_of
from tenants.permissions import RUNS_READ, RUNS_WRITE
from tenants.serializers import validated


class ScheduleList(APIView):
    """Schedules of the caller's scope."""

    required_permissions: ClassVar = {"GET": RUNS_READ, "POST": RUNS_WRITE}

    @extend_schema(operation_id="schedules_list", responses=ScheduleOutput(many=True))
    def get(self, request: Request) -> Response:
        """A page of schedules, newest first."""
        return Response(page_of(schedules_of(caller_of(request)), request, _represent))

    @extend_schema(request=ScheduleInput, responses={201: ScheduleOutput})
    @idempotent
    def post(self, request: Request) -> Response:
        """Define a schedule."""
        schedule = create_schedule(
            caller=caller_of(request), values=validated(ScheduleInput, request), now=timezone.now()
        )
        return Response(_represent(schedule), status=201)


class ScheduleDetail(APIView):
    """One schedule."""

    required_permissions: ClassVar = {"GET": RUNS_READ, "PATCH": RUNS_WRITE, "DELETE": RUNS_WRITE}

    @extend_schema(responses=ScheduleOutput)
    def get(self, request: Request, schedule_id: UUID) -> Response:
        """Show a schedule and its next tick."""
        return Response(_represent(schedule_of(caller_of(request), schedule_id)))

    @extend_schema(request=ScheduleInput, responses=ScheduleOutput)
    def patch(self, request: Request, schedule_id: UUID) -> Response:
        """Change a schedule; ``enabled: false`` pauses it, and what is missed then is not made up
        for."""
        schedule = update_schedule(
            schedule=schedule_of(caller_of(request), schedule_id),
            values=validated(ScheduleInput, request),
            now=timezone.now(),
        )
        return Response(_represent(schedule))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, schedule_id: UUID) -> Response:
        """Delete a schedule; its runs stay."""
        delete_schedule(schedule=schedule_of(caller_of(request), schedule_id))
        return Response(status=204)


def _represent(schedule: Schedule) -> dict[str, Any]:
    return dict(ScheduleOutput(schedule).data)
