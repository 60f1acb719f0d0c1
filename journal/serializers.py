"""What the journal's routes read and write."""

from datetime import UTC
from typing import Any

from rest_framework import serializers

from journal.models import STATUSES, Call, Rating
from tenants.pagination import DEFAULT_LIMIT, MAX_LIMIT
from tenants.serializers_base import StrictSerializer


class MomentField(serializers.DateTimeField):
    """ISO 8601. Without an offset, and for a bare date, UTC is meant."""

    def __init__(self, **options: Any) -> None:
        super().__init__(default_timezone=UTC, **options)


class LevelQuery(StrictSerializer):
    """Whose calls."""

    level = serializers.ChoiceField(
        ["scope", "tenant"], default="scope", help_text="`tenant` needs the permission `admin`."
    )


class StatsQuery(LevelQuery):
    """Which calls; the time is a half-open range."""

    since = MomentField(required=False, help_text="The first moment; UTC unless it has an offset.")
    until = MomentField(required=False, help_text="The first moment after it.")
    operation = serializers.CharField(required=False)
    model = serializers.CharField(
        required=False, help_text="The LLM's name, or the model that its provider was asked for."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a period that ends before it begins."""
        if "since" in attrs and "until" in attrs and attrs["since"] > attrs["until"]:
            raise serializers.ValidationError({"until": "until lies before since."})
        return attrs


class CallsQuery(StatsQuery):
    """The filters of the list of calls."""

    trace_id = serializers.CharField(required=False)
    run = serializers.CharField(required=False)
    call_id = serializers.UUIDField(required=False)
    status = serializers.ChoiceField(STATUSES, required=False)
    limit = serializers.CharField(
        required=False, help_text=f"1 to {MAX_LIMIT}, default {DEFAULT_LIMIT}."
    )
    after = serializers.CharField(required=False, help_text="`next_after` of the page before.")


class UsageSerializer(serializers.Serializer[Any]):
    """Tokens as the provider counted them; null is unknown."""

    prompt_tokens = serializers.IntegerField(allow_null=True)
    completion_tokens = serializers.IntegerField(allow_null=True)
    total_tokens = serializers.IntegerField(allow_null=True)
    cached_tokens = serializers.IntegerField(allow_null=True)
    reasoning_tokens = serializers.IntegerField(allow_null=True)


class CallSerializer(serializers.ModelSerializer[Call]):
    """One attempt."""

    object = serializers.CharField(default="call", read_only=True)
    usage = UsageSerializer(source="*")
    score = serializers.FloatField(allow_null=True, help_text="Its newest rating.")

    class Meta:
        model = Call
        fields = (
            "object",
            "id",
            "scope_id",
            "operation",
            "trace_id",
            "llm_name",
            "base_url",
            "model",
            "model_answered",
            "key_id",
            "key_source",
            "ts",
            "status",
            "http_status",
            "streamed",
            "first_token_ms",
            "latency_ms",
            "usage",
            "score",
            "cost_micros",
            "price",
            "run",
            "step",
            "provider_id",
            "error_class",
            "error_detail",
            "cooldown_until",
        )
        read_only_fields = fields


class CallPageSerializer(serializers.Serializer[Any]):
    """A page of calls; where there are more, ``after=next_after`` gives the next one."""

    object = serializers.CharField(default="list")
    data = CallSerializer(many=True)  # type: ignore[assignment]
    has_more = serializers.BooleanField()
    next_after = serializers.UUIDField(allow_null=True)


class ScoreField(serializers.FloatField):
    """A number from 0 to 1; FloatField alone would take text and booleans too."""

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=0, max_value=1, **options)

    def to_internal_value(self, data: Any) -> float:
        """The number."""
        if isinstance(data, str | bool):
            self.fail("invalid")
        return super().to_internal_value(data)


class RatingInput(StrictSerializer):
    """A score for one call, or for the newest answered call of a trace."""

    score = ScoreField()
    call_id = serializers.UUIDField(required=False)
    trace_id = serializers.CharField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse both and neither."""
        if ("call_id" in attrs) == ("trace_id" in attrs):
            raise serializers.ValidationError("Give either call_id or trace_id.")
        return attrs


class RatingSerializer(serializers.ModelSerializer[Rating]):
    """A rating as it was stored."""

    object = serializers.CharField(default="rating", read_only=True)

    class Meta:
        model = Rating
        fields = ("object", "id", "call_id", "score", "created_at")
        read_only_fields = fields


class FiguresSerializer(UsageSerializer):
    """Counts, sums of tokens where any call says them, and the latency of answers."""

    calls = serializers.IntegerField()
    errors = serializers.IntegerField()  # type: ignore[assignment]  # DRF moves it off the class
    latency_p50_ms = serializers.FloatField(allow_null=True)
    latency_p95_ms = serializers.FloatField(allow_null=True)


class ModelFiguresSerializer(FiguresSerializer):
    """The figures of one model."""

    llm_name = serializers.CharField()


class OperationFiguresSerializer(FiguresSerializer):
    """The figures of one operation; null is that of calls without one."""

    operation = serializers.CharField(allow_null=True)


class StatsSerializer(serializers.Serializer[Any]):
    """Figures of a period, most used models and operations first."""

    object = serializers.CharField(default="stats", read_only=True)
    level = serializers.CharField()
    since = MomentField()
    until = MomentField(allow_null=True)
    totals = FiguresSerializer()
    by_model = ModelFiguresSerializer(many=True)
    by_operation = OperationFiguresSerializer(many=True)
