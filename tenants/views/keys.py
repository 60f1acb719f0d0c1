"""/api/v1/keys"""

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from tenants.access import visible_key, writable_key, writable_scope
from tenants.caller import caller_of
from tenants.idempotency import idempotent
from tenants.models import ProviderKey
from tenants.pagination import page_of
from tenants.permissions import KEYS_WRITE
from tenants.runtime import current_broker
from tenants.selectors import keys_of
from tenants.serializers import KeyChange, KeyCheckOutput, KeyInput, KeyOutput, validated
from tenants.services.key_checks import check_key
from tenants.services.keys import add_key, delete_key, update_key


def represent(key: ProviderKey) -> dict[str, Any]:
    """A key as the API shows it."""
    return dict(KeyOutput(key).data)


class KeyList(APIView):
    """Provider keys of the caller's scope, and the shared ones."""

    required_permissions: ClassVar = {"GET": KEYS_WRITE, "POST": KEYS_WRITE}

    @extend_schema(operation_id="keys_list", responses=KeyOutput(many=True))
    def get(self, request: Request) -> Response:
        """List keys, masked."""
        return Response(page_of(keys_of(caller_of(request)), request, represent))

    @extend_schema(request=KeyInput, responses={201: KeyOutput})
    @idempotent
    def post(self, request: Request) -> Response:
        """Store a key. Its value is never shown again."""
        caller = caller_of(request)
        values = validated(KeyInput, request)
        scope = writable_scope(caller, values.pop("scope", None))
        key = add_key(scope=scope, created_by=caller.user, **values)
        return Response(represent(key), status=201)


class KeyChecks(APIView):
    """Trying a key with its provider."""

    required_permissions: ClassVar = {"POST": KEYS_WRITE}

    @extend_schema(operation_id="keys_check", request=None, responses=KeyCheckOutput)
    def post(self, request: Request, key_id: UUID) -> Response:
        """Make one call of one token with this key; a refused key is out of use from then on."""
        key = writable_key(caller_of(request), key_id)
        return Response(KeyCheckOutput(check_key(key=key, broker=current_broker())).data)


class KeyDetail(APIView):
    """One provider key."""

    required_permissions: ClassVar = {"GET": KEYS_WRITE, "PATCH": KEYS_WRITE, "DELETE": KEYS_WRITE}

    @extend_schema(responses=KeyOutput)
    def get(self, request: Request, key_id: UUID) -> Response:
        """Show a key, masked."""
        return Response(represent(visible_key(caller_of(request), key_id)))

    @extend_schema(request=KeyChange, responses=KeyOutput)
    def patch(self, request: Request, key_id: UUID) -> Response:
        """Replace a key's value, or change its label, priority or status."""
        key = writable_key(caller_of(request), key_id)
        return Response(represent(update_key(key=key, **validated(KeyChange, request))))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, key_id: UUID) -> Response:
        """Delete a key."""
        delete_key(key=writable_key(caller_of(request), key_id))
        return Response(status=204)
