"""The engine's ports over Django: whose keys and which models a scope has.

Nothing is cached: a key that was replaced, refused or deleted is out of use with the next call
of every process.
"""

import logging
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

from llmbroker.errors import KeyUnavailableError
from llmbroker.models import ApiKey, KeySource, LLMConfig
from tenants.context import all_tenants, scope_active
from tenants.database import in_thread, in_thread_shared
from tenants.encryption import Secret
from tenants.errors import NotFound, SecretUnavailable
from tenants.models import Endpoint, ProviderKey, Scope
from tenants.payers import Limit, limited_ref, parse_ref
from tenants.selectors import KeyLevels, endpoints_for, keys_for, reach_of, scope_of
from tenants.services.keys import note_refusal
from tenants.vault import open_value

logger = logging.getLogger(__name__)

_ENVIRONMENT = "env:"


class DjangoSecrets:
    """llmbroker.ports.KeyRing and KeyWatch over the stored keys and the environment.

    The first level that has a key for the reference pays alone: the scope's own, the tenant's
    shared ones, the installation's. A key there that is refused or cannot be opened does not
    pass the bill to the next level.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = environment

    async def resolve(self, ref: str) -> str:
        """The best key for ``"<scope>/<REF>"``, or the installation's for a bare reference."""
        scope, _, name = ref.rpartition("/")
        for key in await self.keys(name, scope=scope or None):
            return key.value
        raise KeyError(ref)

    async def keys(self, ref: str, *, scope: str | None) -> Sequence[ApiKey]:
        """The keys that ``scope`` may pay with for ``ref``, best first."""
        found = (await self.keyring([ref], scope=scope)).get(ref, [])
        if isinstance(found, KeyUnavailableError):
            raise found
        return found

    async def keyring(
        self, refs: Collection[str], *, scope: str | None
    ) -> Mapping[str, Sequence[ApiKey] | KeyUnavailableError]:
        """The keys for many references, with one query; an error where none of them opens."""
        if scope is not None:
            return await in_thread_shared(self._keyring_of, scope, frozenset(refs))
        limits = {ref: parse_ref(ref) for ref in refs}
        return {
            ref: self._installation(name)
            for ref, (name, limit) in limits.items()
            if limit is Limit.INSTALLATION
        }

    async def key_refused(self, key: ApiKey, *, detail: str) -> None:
        """Take a stored key out of use that a provider refused."""
        if not key.id.startswith(_ENVIRONMENT):
            await in_thread(_note_refusal, key, detail)

    def _keyring_of(
        self, scope_id: str, refs: Collection[str]
    ) -> dict[str, Sequence[ApiKey] | KeyUnavailableError]:
        try:
            scope = scope_of(scope_id)
        except NotFound:
            return {}
        limits = {ref: parse_ref(ref) for ref in refs}
        with scope_active(reach_of(scope)):
            stored = keys_for(scope, {name for name, _ in limits.values()})
        found: dict[str, Sequence[ApiKey] | KeyUnavailableError] = {}
        for ref, (name, limit) in limits.items():
            try:
                found[ref] = self._best_level(scope, name, stored[name], limit)
            except SecretUnavailable as error:
                found[ref] = error
        return found

    def _best_level(self, scope: Scope, ref: str, levels: KeyLevels, limit: Limit) -> list[ApiKey]:
        if levels.own:
            return _opened(levels.own, KeySource.OWN)
        if levels.shared and limit >= Limit.TENANT:
            return _opened(levels.shared, KeySource.SHARED)
        if limit >= Limit.INSTALLATION and _may_use_installation(scope):
            return self._installation(ref)
        return []

    def _installation(self, ref: str) -> list[ApiKey]:
        value = self._environment.get(ref, "").strip()
        return [ApiKey(_ENVIRONMENT + ref, value, KeySource.INSTALLATION)] if value else []


class DjangoRegistry:
    """llmbroker.ports.ScopedRegistry: the common pool, and what the scope's tenant adds to it."""

    def __init__(self, common: Iterable[LLMConfig]) -> None:
        self._common = list(common)
        self._unusable: dict[str, str] = {}

    async def load(self) -> list[LLMConfig]:
        """The common pool."""
        return list(self._common)

    async def load_for(self, scope: str) -> list[LLMConfig]:
        """The models ``scope`` may call; a tenant's endpoint hides a common one of its name."""
        own = await in_thread_shared(self._endpoints_of, scope)
        taken = {config.alias for config in own}
        common = [each for each in self._common if not {each.name, each.alias} & taken]
        return common + own

    def _endpoints_of(self, scope_id: str) -> list[LLMConfig]:
        try:
            scope = scope_of(scope_id)
        except NotFound:
            return []
        with scope_active(reach_of(scope)):
            endpoints = endpoints_for(scope).filter(enabled=True).order_by("pk")
            found = [self._usable(scope.tenant.slug, endpoint) for endpoint in endpoints]
        return [config for config in found if config is not None]

    def _usable(self, slug: str, endpoint: Endpoint) -> LLMConfig | None:
        """The model at ``endpoint``, or None where its row makes no sense: the others must work
        all the same. The log says so once, until the row is mended."""
        row = str(endpoint.pk)
        try:
            config = _config(slug, endpoint)
        except ValueError as error:
            if self._unusable.get(row) != str(error):
                self._unusable[row] = str(error)
                logger.warning("endpoint %s is left out: %s", row, error)
            return None
        self._unusable.pop(row, None)
        return config


def _note_refusal(key: ApiKey, detail: str) -> None:
    """The key may be the tenant's, which the scope that used it may not change."""
    with all_tenants(f"the provider refused key {key.id}"):
        note_refusal(key_id=UUID(key.id), value=Secret(key.value), detail=detail)


def _opened(keys: list[ProviderKey], source: KeySource) -> list[ApiKey]:
    """The active keys that open; SecretUnavailable if there are active ones and none does."""
    opened, failure = [], None
    for key in keys:
        if key.status != ProviderKey.Status.ACTIVE:
            continue
        try:
            value = open_value(key).reveal()
            opened.append(ApiKey(str(key.pk), value, source, version=_version(key)))
        except SecretUnavailable as error:
            failure = error
    if failure is not None and not opened:
        raise failure
    return opened


def _version(key: ProviderKey) -> str:
    return bytes(key.fingerprint[:6]).hex()


def _may_use_installation(scope: Scope) -> bool:
    return (
        scope.tenant.uses_installation_keys and scope.key_policy == Scope.KeyPolicy.OWN_THEN_SHARED
    )


def _config(slug: str, endpoint: Endpoint) -> LLMConfig:
    """The name carries the tenant, since cooldowns and journal rows are told apart by it."""
    return LLMConfig(
        name=f"{slug}/{endpoint.name}",
        alias=endpoint.name,
        base_url=endpoint.base_url,
        model=endpoint.model,
        api_key_ref=limited_ref(endpoint),
        parallel=endpoint.parallel,
        weight=endpoint.weight,
        context_window=endpoint.context_window,
        guarded=True,
    )
