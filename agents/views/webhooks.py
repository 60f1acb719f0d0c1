"""/api/v1/webhook_endpoints"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import WebhookDelivery, WebhookEndpoint
from agents.selectors import (
    deliveries_of,
    delivery_of,
    webhook_endpoint_of,
    webhook_endpoints_of,
)
from agents.serializers.webhooks import (
    NewWebhookEndpoint,
    SecretRotation,
    WebhookDeliveryOutput,
    WebhookEndpointChange,
    WebhookEndpointInput,
    WebhookEndpointOutput,
)
from agents.services.deliveries import replay
from agents.services.webhook_endpoints import (
    NewSecret,
    create_webhook_endpoint,
    delete_webhook_endpoint,
    rotate_secret,
    update_webhook_endpoint,
)
from tenants.caller import caller_of
from tenants.idempotency import idempotent
from tenants.pagination import page_of
from tenants.permissions import ADMIN
from tenants.serializers import validated


class WebhookEndpointList(APIView):
    """Where the tenant hears of its runs."""

    required_permissions: ClassVar = {"GET": ADMIN, "POST": ADMIN}

    @extend_schema(
        operation_id="webhook_endpoints_list", responses=WebhookEndpointOutput(many=True)
    )
    def get(self, request: Request) -> Response:
        """A page of webhook endpoints, newest first."""
        endpoints = webhook_endpoints_of(caller_of(request).tenant)
        return Response(page_of(endpoints, request, _represent))

    @extend_schema(request=WebhookEndpointInput, responses={201: NewWebhookEndpoint})
    @idempotent
    def post(self, request: Request) -> Response:
        """Define an endpoint. Its secret is shown in this answer and never again."""
        new = create_webhook_endpoint(
            tenant=caller_of(request).tenant, values=validated(WebhookEndpointInput, request)
        )
        return Response(_with_secret(new), status=201)


class WebhookEndpointDetail(APIView):
    """One webhook endpoint."""

    required_permissions: ClassVar = {"GET": ADMIN, "PATCH": ADMIN, "DELETE": ADMIN}

    @extend_schema(responses=WebhookEndpointOutput)
    def get(self, request: Request, webhook_id: UUID) -> Response:
        """Show an endpoint, and since when it fails if it does."""
        return Response(_represent(_endpoint(request, webhook_id)))

    @extend_schema(request=WebhookEndpointChange, responses=WebhookEndpointOutput)
    def patch(self, request: Request, webhook_id: UUID) -> Response:
        """Change an endpoint. Switched on again, it is sent what waits for it."""
        endpoint = _endpoint(request, webhook_id)
        values = validated(WebhookEndpointChange, request)
        return Response(_represent(update_webhook_endpoint(endpoint=endpoint, values=values)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, webhook_id: UUID) -> Response:
        """Delete an endpoint, and the log of what it was sent."""
        delete_webhook_endpoint(endpoint=_endpoint(request, webhook_id))
        return Response(status=204)


class WebhookEndpointSecret(APIView):
    """The secret that signs what an endpoint is sent."""

    required_permissions: ClassVar = {"POST": ADMIN}

    @extend_schema(request=SecretRotation, responses=NewWebhookEndpoint)
    def post(self, request: Request, webhook_id: UUID) -> Response:
        """Replace the secret. The new one is shown in this answer and never again."""
        endpoint = _endpoint(request, webhook_id)
        overlap = timedelta(seconds=validated(SecretRotation, request)["overlap_seconds"])
        new = rotate_secret(endpoint=endpoint, overlap=overlap, now=timezone.now())
        return Response(_with_secret(new))


class WebhookDeliveries(APIView):
    """What an endpoint was sent."""

    required_permissions: ClassVar = {"GET": ADMIN}

    @extend_schema(
        operation_id="webhook_deliveries_list", responses=WebhookDeliveryOutput(many=True)
    )
    def get(self, request: Request, webhook_id: UUID) -> Response:
        """A page of deliveries, newest first."""
        endpoint = _endpoint(request, webhook_id)
        return Response(page_of(deliveries_of(endpoint), request, _delivery))


class WebhookDeliveryReplay(APIView):
    """Another chance for a delivery."""

    required_permissions: ClassVar = {"POST": ADMIN}

    @extend_schema(request=None, responses={202: WebhookDeliveryOutput})
    def post(self, request: Request, webhook_id: UUID, delivery_id: UUID) -> Response:
        """Send it again, with the same webhook-id."""
        delivery = delivery_of(_endpoint(request, webhook_id), delivery_id)
        return Response(_delivery(replay(delivery=delivery)), status=202)


def _endpoint(request: Request, webhook_id: UUID) -> WebhookEndpoint:
    return webhook_endpoint_of(caller_of(request).tenant, webhook_id)


def _represent(endpoint: WebhookEndpoint) -> dict[str, Any]:
    return dict(WebhookEndpointOutput(endpoint).data)


def _with_secret(new: NewSecret) -> dict[str, Any]:
    return {**_represent(new.endpoint), "secret": new.secret.reveal()}


def _delivery(delivery: WebhookDelivery) -> dict[str, Any]:
    return dict(WebhookDeliveryOutput(delivery).data)
