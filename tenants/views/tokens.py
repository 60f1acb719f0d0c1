"""/api/v1/tokens"""

from typing import ClassVar
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from tenants.access import check_grant, revocable_token, writable_scope
from tenants.caller import caller_of
from tenants.idempotency import idempotent
from tenants.pagination import page_of
from tenants.permissions import KEYS_WRITE
from tenants.selectors import tokens_of
from tenants.serializers import NewTokenOutput, TokenInput, TokenOutput, validated
from tenants.services.tokens import create_token, revoke_token


class TokenList(APIView):
    """Access tokens of the caller's scope; an admin's, all of the tenant."""

    required_permissions: ClassVar = {"GET": KEYS_WRITE, "POST": KEYS_WRITE}

    @extend_schema(operation_id="tokens_list", responses=TokenOutput(many=True))
    def get(self, request: Request) -> Response:
        """List tokens, without their secrets."""
        tokens = tokens_of(caller_of(request))
        return Response(page_of(tokens, request, lambda token: dict(TokenOutput(token).data)))

    @extend_schema(request=TokenInput, responses={201: NewTokenOutput})
    @idempotent
    def post(self, request: Request) -> Response:
        """Make a token. Its text is in this answer and nowhere else."""
        caller = caller_of(request)
        values = validated(TokenInput, request)
        scope = writable_scope(caller, values.pop("scope", None))
        check_grant(caller, values["permissions"], values.get("expires_at"), timezone.now())
        new = create_token(scope=scope, created_by=caller.user, **values)
        return Response({**TokenOutput(new.row).data, "token": new.text.reveal()}, status=201)


class TokenDetail(APIView):
    """One access token."""

    required_permissions: ClassVar = {"DELETE": KEYS_WRITE}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, token_id: UUID) -> Response:
        """Revoke a token. It stays listed, with the time."""
        revoke_token(token=revocable_token(caller_of(request), token_id), now=timezone.now())
        return Response(status=204)
