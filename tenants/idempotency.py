"""``Idempotency-Key``: requests with one key create one thing, however often they are sent.

The key's row is written in the transaction of what is created. A second request at the same time
waits for its end: it then repeats the answer, or does the work if the first one failed. So no
key is ever stuck, and none outlives a failure.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import wraps
from typing import Any

import orjson
from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from psycopg.errors import LockNotAvailable
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.caller import Caller, caller_of
from tenants.errors import Conflict, InvalidInput
from tenants.models import IdempotentRequest, Scope

MAX_LENGTH = 255
KEPT_FOR = timedelta(hours=24)
PATIENCE = "3s"
"""How long a request waits for another one with its key."""

_KEYS = 0x6B657973
"""The advisory locks of keys, apart from others ("keys")."""

SHOWN_ONCE = ("brk_", "whsec_")
"""How secrets of our making begin: they are in no store, and in no repeated answer."""

HEADER = OpenApiParameter(
    "Idempotency-Key",
    location=OpenApiParameter.HEADER,
    description="The same key and body again give the same answer, without what is shown once.",
)
Post = Callable[..., Response]


def idempotency_key_of(request: Request) -> str | None:
    """The request's Idempotency-Key. Raises InvalidInput for one that is empty, long or binary."""
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not (0 < len(key) <= MAX_LENGTH and key.isascii() and key.isprintable()):
        raise InvalidInput(
            f"Idempotency-Key has 1 to {MAX_LENGTH} printable ASCII characters.",
            code="invalid_idempotency_key",
            param="Idempotency-Key",
        )
    return key


def idempotent(post: Post) -> Post:
    """A view's ``post`` that heeds the header. For what is created within the database."""

    @wraps(post)
    def heeding(view: Any, request: Request, *args: Any, **kwargs: Any) -> Response:
        key = idempotency_key_of(request)
        if key is None:
            return post(view, request, *args, **kwargs)
        with transaction.atomic():
            row, is_first = _claim(caller_of(request), key, _fingerprint(request))
            if not is_first:
                return _repeated(row, request)
            response = post(view, request, *args, **kwargs)
            _remember(row, response)
            return response

    heeding.is_idempotent = True  # type: ignore[attr-defined]
    documented: Post = extend_schema(parameters=[HEADER])(heeding)
    return documented


def hold_key(scope: Scope, key: str) -> None:
    """Until the end of the transaction other requests with this key wait here.

    For what keeps its key itself, and must do nothing at all where another was first. Raises
    Conflict (busy).
    """
    with _patience() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_KEYS, f"{scope.pk} {key}"]
        )


def forget_expired() -> int:
    """Delete the keys whose time is over. Returns how many."""
    return IdempotentRequest.objects.filter(expires_at__lte=timezone.now()).delete()[0]


def _claim(caller: Caller, key: str, fingerprint: bytes) -> tuple[IdempotentRequest, bool]:
    """The row of the key, and whether it is this request's to fill. Raises Conflict (busy)."""
    now = timezone.now()
    same = IdempotentRequest.objects.filter(scope=caller.scope, key=key)
    same.filter(expires_at__lte=now).delete()
    mine = IdempotentRequest(
        tenant=caller.tenant,
        scope=caller.scope,
        key=key,
        fingerprint=fingerprint,
        expires_at=now + KEPT_FOR,
    )
    with _patience():
        IdempotentRequest.objects.bulk_create([mine], ignore_conflicts=True)
    row = same.get()
    return row, row.pk == mine.pk


@contextmanager
def _patience() -> Iterator[CursorWrapper]:
    """A block that may wait for another request of its key. Raises Conflict after a while."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{PATIENCE}'")
            yield cursor
            cursor.execute("SET LOCAL lock_timeout = DEFAULT")
    except OperationalError as error:
        if not isinstance(error.__cause__, LockNotAvailable):
            raise
        raise Conflict(
            "A request with this Idempotency-Key is under way.", code="idempotency_in_progress"
        ) from None


def _repeated(row: IdempotentRequest, request: Request) -> Response:
    if bytes(row.fingerprint) != _fingerprint(request):
        raise Conflict(
            "This Idempotency-Key was used for another request.", code="idempotency_conflict"
        )
    return Response(row.answer, status=row.status, headers={"Idempotent-Replayed": "true"})


def _remember(row: IdempotentRequest, response: Response) -> None:
    if response.status_code >= 400:
        transaction.set_rollback(True)
        return
    answer = orjson.loads(JSONRenderer().render(response.data))
    row.answer = {
        name: None if isinstance(value, str) and value.startswith(SHOWN_ONCE) else value
        for name, value in answer.items()
    }
    row.status = response.status_code
    row.save(update_fields=["answer", "status"])


def _fingerprint(request: Request) -> bytes:
    """Keyed: a body may hold a secret, which nobody shall guess from the database."""
    asked = [request.method, request.path, request.data]
    text = orjson.dumps(asked, default=str, option=orjson.OPT_SORT_KEYS)
    return hmac.digest(settings.SECRET_KEY.encode(), text, "sha256")
