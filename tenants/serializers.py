"""What the API of this app reads and shows. No serializer that shows has a secret's field."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from tenants.encryption import Secret
from tenants.key_values import key_value
from tenants.models import AccessToken, AuditEntry, Endpoint, Limit, ProviderKey, Scope
from tenants.models.keys import KEY_REF
from tenants.models.people import SLUG
from tenants.roles import ALL
from tenants.serializers_base import StrictSerializer
from tenants.services.key_checks import KeyCheck, Standing
from tenants.vault import is_readable

SCOPE_HELP = "'shared' or a scope's id; the caller's own scope if left out."


def validated(serializer: type[StrictSerializer], request: Request) -> dict[str, Any]:
    """The checked body. A PATCH may leave fields out."""
    reader = serializer(data=request.data, partial=request.method == "PATCH")
    reader.is_valid(raise_exception=True)
    values: dict[str, Any] = reader.validated_data
    return values


@extend_schema_field({"type": "string", "writeOnly": True})
class SecretField(serializers.Field[Secret[str], str, str, Any]):
    """Text that becomes a Secret at once, so that nothing of ours prints it."""

    default_error_messages = {"invalid": "Not a string."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(write_only=True, **kwargs)

    def to_internal_value(self, data: Any) -> Secret[str]:
        """The value without white space around it."""
        if not isinstance(data, str):
            self.fail("invalid")
        return key_value(data, param=str(self.field_name))


class KeyInput(StrictSerializer):
    """A key to store."""

    ref = serializers.CharField(max_length=64, validators=[KEY_REF])
    value = SecretField()
    label = serializers.CharField(  # type: ignore[assignment]
        max_length=200, required=False, allow_blank=True
    )
    priority = serializers.IntegerField(min_value=0, max_value=32767, required=False)
    scope = serializers.CharField(required=False, help_text=SCOPE_HELP)


class KeyChange(StrictSerializer):
    """What of a stored key may change."""

    value = SecretField(required=False)
    label = serializers.CharField(  # type: ignore[assignment]
        max_length=200, required=False, allow_blank=True
    )
    priority = serializers.IntegerField(min_value=0, max_value=32767, required=False)
    status = serializers.ChoiceField(["active", "disabled"], required=False)


class KeyOutput(serializers.ModelSerializer[ProviderKey]):
    """A stored key, masked."""

    object = serializers.CharField(default="key", read_only=True)
    scope_kind = serializers.CharField(source="scope.kind", read_only=True)
    needs_reentry = serializers.SerializerMethodField()

    class Meta:
        model = ProviderKey
        fields = (
            "id", "object", "scope", "scope_kind", "ref", "label", "hint", "status", "priority",
            "needs_reentry", "last_used_at", "last_error", "created_at", "updated_at",
        )  # fmt: skip

    def get_needs_reentry(self, key: ProviderKey) -> bool:
        """Whether the stored value can no longer be opened."""
        return not is_readable(key)


class KeyCheckOutput(serializers.Serializer[KeyCheck]):
    """What a provider thinks of a key."""

    object = serializers.CharField(default="key.check", read_only=True)
    standing = serializers.ChoiceField(choices=[each.value for each in Standing])
    llm = serializers.CharField()
    detail = serializers.CharField()


class ScopeOutput(serializers.ModelSerializer[Scope]):
    """A scope."""

    object = serializers.CharField(default="scope", read_only=True)

    class Meta:
        model = Scope
        fields = ("id", "object", "kind", "name", "key_policy", "created_at")


class ScopeChange(StrictSerializer):
    """What of a scope may change."""

    key_policy = serializers.ChoiceField(Scope.KeyPolicy.choices)


class TokenInput(StrictSerializer):
    """An access token to make."""

    name = serializers.CharField(max_length=200)
    permissions = serializers.ListField(
        child=serializers.ChoiceField(sorted(ALL)), allow_empty=False, max_length=len(ALL)
    )
    scope = serializers.CharField(required=False, help_text=SCOPE_HELP)
    expires_at = serializers.DateTimeField(required=False, allow_null=True)


class TokenOutput(serializers.ModelSerializer[AccessToken]):
    """An access token without its secret."""

    object = serializers.CharField(default="token", read_only=True)

    class Meta:
        model = AccessToken
        fields: tuple[str, ...] = (
            "id", "object", "scope", "name", "token_id", "permissions", "expires_at",
            "revoked_at", "last_used_at", "created_at",
        )  # fmt: skip


class NewTokenOutput(TokenOutput):
    """The one answer that shows a token."""

    token = serializers.CharField(allow_null=True)

    class Meta(TokenOutput.Meta):
        fields = (*TokenOutput.Meta.fields, "token")


class EndpointInput(StrictSerializer):
    """An endpoint to store, or what of it changes."""

    name = serializers.CharField(max_length=63, validators=[SLUG])
    base_url = serializers.CharField(max_length=500)
    model = serializers.CharField(max_length=200)
    api_key_ref = serializers.CharField(
        max_length=64, validators=[KEY_REF], required=False, allow_blank=True
    )
    parallel = serializers.IntegerField(
        min_value=1, max_value=32767, required=False, allow_null=True
    )
    weight = serializers.FloatField(min_value=0.0, max_value=1.0, required=False)
    context_window = serializers.IntegerField(
        min_value=1, max_value=2_147_483_647, required=False, allow_null=True
    )
    enabled = serializers.BooleanField(required=False)


class NewEndpointInput(EndpointInput):
    """An endpoint to store, and for whom."""

    scope = serializers.CharField(
        required=False,
        help_text="'shared' for every scope of the tenant; the caller's own if left out.",
    )


class EndpointOutput(serializers.ModelSerializer[Endpoint]):
    """An endpoint; without a scope it serves every scope of the tenant."""

    object = serializers.CharField(default="endpoint", read_only=True)

    class Meta:
        model = Endpoint
        fields = (
            "id", "object", "scope", "name", "base_url", "model", "api_key_ref", "parallel",
            "weight", "context_window", "enabled", "created_at", "updated_at",
        )  # fmt: skip


class LimitInput(StrictSerializer):
    """A limit to set: the tenant's, or with ``scope`` or ``token`` that one's."""

    name = serializers.ChoiceField(Limit.Kind.choices)
    limit = serializers.DecimalField(max_digits=20, decimal_places=6, min_value=0)
    scope = serializers.UUIDField(required=False, allow_null=True)
    token = serializers.UUIDField(required=False, allow_null=True)


class LimitOutput(serializers.Serializer[Any]):
    """A limit and where it stands. Amounts are decimal texts; ``reset_after`` is in seconds."""

    id = serializers.UUIDField()
    object = serializers.CharField(default="limit")
    name = serializers.CharField()
    of = serializers.CharField()
    scope = serializers.UUIDField(allow_null=True)
    token = serializers.UUIDField(allow_null=True)
    limit = serializers.CharField()
    remaining = serializers.CharField()
    reset_after = serializers.FloatField(allow_null=True)


class AuditOutput(serializers.ModelSerializer[AuditEntry]):
    """One change; of a secret only that it changed."""

    object = serializers.CharField(default="audit_entry", read_only=True)

    class Meta:
        model = AuditEntry
        fields = (
            "id", "object", "actor", "action", "object_id", "object_name", "changes", "created_at",
        )  # fmt: skip
