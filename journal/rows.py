"""The engine's Call as a row, and back. Odd values become storable ones: no answer fails here."""

from uuid import UUID

from journal import models
from journal.models import INSTALLATION
from journal.moments import moment_of
from journal.text import stored
from llmbroker.models import USAGE_FIELDS, Call, CallStatus, KeySource, Usage

LARGEST_FIGURE = 2**31 - 1
LARGEST_STATUS = 999
LARGEST_COST = 2**63 - 1

TEXT_LIMITS = {
    "operation": models.NAME_LIMIT,
    "trace_id": models.NAME_LIMIT,
    "llm_name": models.NAME_LIMIT,
    "base_url": models.URL_LIMIT,
    "model": models.NAME_LIMIT,
    "model_answered": models.NAME_LIMIT,
    "key_id": models.NAME_LIMIT,
    "error_class": models.NAME_LIMIT,
    "error_detail": models.DETAIL_LIMIT,
    "provider_id": models.NAME_LIMIT,
    "run": models.NAME_LIMIT,
    "price": models.NAME_LIMIT,
}
AS_IT_IS = ("cooldown_until", "streamed")


def row_of(call: Call) -> models.Call:
    """An unsaved row. ValueError if its id is no UUIDv7 or its scope no UUID."""
    identity = call_id_of(call.id)
    usage = call.usage or Usage()
    row = models.Call(
        id=identity,
        scope_id=scope_id_of(call.scope),
        ts=call.ts or moment_of(identity),
        status=(call.status or CallStatus.UNKNOWN).value,
        key_source=call.key_source and call.key_source.value,
        http_status=_figure(call.http_status, LARGEST_STATUS),
        latency_ms=_figure(call.latency_ms),
        first_token_ms=_figure(call.first_token_ms),
        step=_figure(call.step),
        cost_micros=_figure(call.cost_micros, LARGEST_COST),
        **{name: _figure(getattr(usage, name)) for name in USAGE_FIELDS},
        **{name: getattr(call, name) for name in AS_IT_IS},
    )
    for name, limit in TEXT_LIMITS.items():
        text: str | None = getattr(call, name)
        setattr(row, name, None if text is None else stored(text, limit))
    return row


def call_of(row: models.Call) -> Call:
    """The engine's view of a row that ``selectors.with_score`` read."""
    usage = Usage(**{name: getattr(row, name) for name in USAGE_FIELDS})
    return Call(
        id=str(row.id),
        scope=None if row.scope_id == INSTALLATION else str(row.scope_id),
        ts=row.ts,
        status=CallStatus(row.status),
        key_source=KeySource(row.key_source) if row.key_source else None,
        usage=None if usage == Usage() else usage,
        score=row.score,
        http_status=row.http_status,
        latency_ms=row.latency_ms,
        first_token_ms=row.first_token_ms,
        step=row.step,
        cost_micros=row.cost_micros,
        **{name: getattr(row, name) for name in (*TEXT_LIMITS, *AS_IT_IS)},
    )


def call_id_of(text: str) -> UUID:
    """The id of a call. ValueError if it is no UUIDv7, whose order is what pages are read by."""
    identity = UUID(text)
    if identity.version != 7:
        raise ValueError(f"the id of a call is a UUIDv7, got {text!r}")
    return identity


def scope_id_of(scope: str | None) -> UUID:
    """The scope's id; without a scope, the installation's. ValueError if it is no UUID."""
    return INSTALLATION if scope is None else UUID(scope)


def _figure(value: int | None, largest: int = LARGEST_FIGURE) -> int | None:
    """A count as the column can hold it: what a provider made up is unknown, not an error."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= largest else None
