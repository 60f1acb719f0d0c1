"""Access tokens: made once, shown once, checked by a keyed digest, revoked."""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from uuid_utils.compat import uuid7

from tenants import vault
from tenants.encryption import KeyUnavailable, Tampered
from tenants.errors import InvalidInput, SecretUnavailable
from tenants.models import AccessToken, DataKey, Scope
from tenants.roles import ALL
from tenants.services.audit import note
from tenants.services.data_keys import data_key_for_sealing
from tenants.tokens import TokenText, new_token


@dataclass(frozen=True)
class NewToken:
    """A token as stored, and its text, which exists only here."""

    row: AccessToken
    text: TokenText


@transaction.atomic
def create_token(
    *,
    scope: Scope,
    name: str,
    permissions: Iterable[str],
    created_by: User | None,
    expires_at: datetime | None = None,
) -> NewToken:
    """A token that acts as ``scope``. Raises InvalidInput for permissions that there are not."""
    wanted = sorted(set(permissions))
    if not wanted or not ALL.issuperset(wanted):
        raise InvalidInput(
            f"permissions are one or more of: {', '.join(sorted(ALL))}.", param="permissions"
        )
    pepper = data_key_for_sealing(tenant=scope.tenant)
    text = new_token()
    row = AccessToken.objects.create(
        id=uuid7(),
        tenant=scope.tenant,
        scope=scope,
        name=name,
        token_id=text.token_id,
        digest=_digest(pepper, scope, text),
        pepper=pepper,
        permissions=wanted,
        created_by=created_by,
        expires_at=expires_at,
    )
    told = {"scope": scope.pk, "permissions": wanted, "expires_at": expires_at}
    note("token.created", row, tenant_id=row.tenant_id, changes=told)
    return NewToken(row, text)


@transaction.atomic
def revoke_token(*, token: AccessToken, now: datetime) -> None:
    """The next request with this token is refused, in every process."""
    if AccessToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=now):
        note("token.revoked", token, tenant_id=token.tenant_id)


def is_genuine(*, token: AccessToken, text: TokenText) -> bool:
    """Whether ``text`` is the token that ``token`` was stored for. Raises SecretUnavailable."""
    try:
        expected = _digest(token.pepper, token.scope, text)
    except (KeyUnavailable, Tampered):
        raise SecretUnavailable(
            "This token cannot be checked: the key it was made with is not available."
        ) from None
    return hmac.compare_digest(expected, bytes(token.digest))


def note_token_use(*, token: AccessToken, now: datetime, not_since: datetime) -> None:
    """Stamp a token as used, unless that was done after ``not_since``."""
    if token.last_used_at is None or token.last_used_at < not_since:
        AccessToken.objects.filter(pk=token.pk, last_used_at=token.last_used_at).update(
            last_used_at=now
        )


def _digest(pepper: DataKey, scope: Scope, text: TokenText) -> bytes:
    """Bound to scope and id by a key that the database does not hold: no row can be forged."""
    return vault.data_keys().digest(
        vault.wrapped(pepper), "token", scope.pk.bytes, text.token_id, text.secret.reveal()
    )
