"""What the journal's routes read and write."""

from datetime import UTC, timedelta
from typing import Any

from django.utils import timezone
from rest_framework import serializers

from journal.figures.cells import Cell
from journal.models import STATUSES, Call, Rating
from tenants.pagination import DEFAULT_LIMIT, MAX_LIMIT
from tenants.serializers_base import StrictSerializer

HOURS_WITHIN = timedelta(days=7)


class MomentField(serializers.DateTimeField):
    """ISO 8601. Without an offset, and for a bare date, UTC is meant."""

    def __init__(self, **options: Any) -> None:
        super().__init__(default_timezone=UTC, **options)


class LevelQuery(StrictSerializer):
    """Whose calls."""

    level = serializers.ChoiceField(
        ["scope", "tenant", "installation"],
        default="scope",
        help_text="`tenant` needs the permission `admin`; `installation` is the operator's.",
    )


class CallFilters(LevelQuery):
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


class StatsQuery(CallFilters):
    """The filters of statistics, and what their course is told in."""

    interval = serializers.ChoiceField(
        ["day", "hour"], default="day", help_text="`hour` is for a week at most."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse more hours than anybody reads."""
        attrs = super().validate(attrs)
        if attrs["interval"] == "hour":
            until = attrs.get("until") or timezone.now()
            if "since" not in attrs or until - attrs["since"] > HOURS_WITHIN:
                raise serializers.ValidationError(
                    {"interval": "Hours are told of a week at most: give since and until."}
                )
        return attrs


class CallFiltersQuery(CallFilters):
    """The filters of lists of calls."""

    trace_id = serializers.CharField(required=False)
    run = serializers.CharField(required=False)
    call_id = serializers.UUIDField(required=False)
    status = serializers.ChoiceField(STATUSES, required=False)


class CallsQuery(CallFiltersQuery):
    """The same, a page at a time."""

    limit = serializers.CharField(
        required=False, help_text=f"1 to {MAX_LIMIT}, default {DEFAULT_LIMIT}."
    )
    after = serializers.CharField(required=False, help_text="`next_after` of the page before.")


class PayloadSerializer(serializers.Serializer[Any]):
    """What a call said and was told."""

    object = serializers.CharField(default="payload")
    call_id = serializers.UUIDField()
    messages = serializers.ListField(child=serializers.DictField())
    answer = serializers.DictField()


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


class FailureSerializer(serializers.Serializer[Any]):
    """Failed attempts of one cause: the class of the error, else the status."""

    cause = serializers.CharField()
    calls = serializers.IntegerField()


class FiguresSerializer(serializers.Serializer[Cell]):
    """Counts, sums of tokens and cost where any call says them, and the latency of answers."""

    calls = serializers.IntegerField()
    errors = serializers.IntegerField()  # type: ignore[assignment]  # DRF moves it off the class
    prompt_tokens = serializers.IntegerField(allow_null=True)
    completion_tokens = serializers.IntegerField(allow_null=True)
    total_tokens = serializers.IntegerField(allow_null=True)
    cached_tokens = serializers.IntegerField(allow_null=True)
    reasoning_tokens = serializers.IntegerField(allow_null=True)
    cost_micros = serializers.IntegerField(
        allow_null=True, help_text="Millionths of a US dollar, where the price is known."
    )
    latency_p50_ms = serializers.FloatField(allow_null=True, help_text="Within 5 %.")
    latency_p95_ms = serializers.FloatField(allow_null=True, help_text="Within 5 %.")
    failures = FailureSerializer(many=True)

    def to_representation(self, instance: Cell) -> dict[str, Any]:
        """The figures of a cell."""
        return {
            "calls": instance.calls,
            "errors": instance.errors,
            **instance.sums,
            "latency_p50_ms": instance.latency(0.5),
            "latency_p95_ms": instance.latency(0.95),
            "failures": [
                {"cause": cause, "calls": calls} for cause, calls in instance.failures.most_common()
            ],
        }


class ModelFiguresSerializer(FiguresSerializer):
    """The figures of one model."""

    llm_name = serializers.CharField()

    def to_representation(self, instance: Cell) -> dict[str, Any]:
        """With its name."""
        return {"llm_name": instance.names[0], **super().to_representation(instance)}


class OperationFiguresSerializer(FiguresSerializer):
    """The figures of one operation; null is that of calls without one."""

    operation = serializers.CharField(allow_null=True)

    def to_representation(self, instance: Cell) -> dict[str, Any]:
        """With its name."""
        return {"operation": instance.names[0] or None, **super().to_representation(instance)}


class KeyFiguresSerializer(FiguresSerializer):
    """The figures of one key: its id, never its value; null is that of calls without one."""

    key_id = serializers.CharField(allow_null=True)
    key_source = serializers.CharField(allow_null=True)

    def to_representation(self, instance: Cell) -> dict[str, Any]:
        """With whose it is."""
        key_id, source = (name or None for name in instance.names)
        return {"key_id": key_id, "key_source": source, **super().to_representation(instance)}


class SpanFiguresSerializer(FiguresSerializer):
    """The figures of one day or hour, which begins at ``start``."""

    start = MomentField()

    def to_representation(self, instance: Cell) -> dict[str, Any]:
        """With its beginning."""
        start = instance.span and f"{instance.span.isoformat()}Z"
        return {"start": start, **super().to_representation(instance)}


class StatsSerializer(serializers.Serializer[Any]):
    """Figures of a period, most used models and operations first."""

    object = serializers.CharField(default="stats", read_only=True)
    level = serializers.CharField()
    interval = serializers.CharField()
    since = MomentField()
    until = MomentField(allow_null=True)
    totals = FiguresSerializer()
    by_model = ModelFiguresSerializer(many=True)
    by_operation = OperationFiguresSerializer(many=True)
    by_key = KeyFiguresSerializer(many=True)
    course = SpanFiguresSerializer(many=True, help_text="By day or hour, oldest first.")
