"""/api/v1/audit"""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from tenants.caller import caller_of
from tenants.pagination import page_of
from tenants.permissions import ADMIN
from tenants.selectors import audit_of
from tenants.serializers import AuditOutput


class AuditLog(APIView):
    """Who changed what in the caller's tenant."""

    required_permissions: ClassVar = {"GET": ADMIN}

    @extend_schema(operation_id="audit_list", responses=AuditOutput(many=True))
    def get(self, request: Request) -> Response:
        """A page of changes, newest first."""
        entries = audit_of(caller_of(request).tenant)
        return Response(page_of(entries, request, lambda entry: dict(AuditOutput(entry).data)))
