"""/api/v1/models"""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from llmbroker.snapshot import ModelState
from tenants.caller import caller_of
from tenants.payers import parse_ref
from tenants.permissions import ANY
from tenants.runtime import current_broker

ModelOutput = inline_serializer(
    "Model",
    {
        "id": serializers.CharField(),
        "object": serializers.CharField(),
        "alias": serializers.CharField(allow_null=True),
        "model": serializers.CharField(),
        "api_key_ref": serializers.CharField(),
        "has_key": serializers.BooleanField(),
        "usable": serializers.BooleanField(),
        "cooldown_until": serializers.DateTimeField(allow_null=True),
        "context_window": serializers.IntegerField(allow_null=True),
    },
    many=True,
)


class ModelList(APIView):
    """Models that the caller's scope can call."""

    required_permissions: ClassVar = {"GET": ANY}

    @extend_schema(operation_id="models_list", responses=ModelOutput)
    def get(self, request: Request) -> Response:
        """List models, whether a key exists for each, and whether it can be called now."""
        scope = caller_of(request).scope
        snapshot = current_broker().for_scope(str(scope.pk)).snapshot()
        data = [represent(state) for state in snapshot.models.values()]
        return Response({"object": "list", "data": data, "has_more": False, "next_after": None})


def represent(state: ModelState) -> dict[str, Any]:
    """A model as the API shows it."""
    config = state.config
    return {
        "id": config.name,
        "object": "model",
        "alias": config.alias,
        "model": config.model,
        "api_key_ref": parse_ref(config.api_key_ref)[0],
        "has_key": state.has_key,
        "usable": state.usable,
        "cooldown_until": state.cooldown_until,
        "context_window": config.context_window,
    }
