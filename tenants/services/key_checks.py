"""Trying a stored key with its provider: one call of one token, through the gate, in no journal."""

from dataclasses import dataclass
from enum import StrEnum

from llmbroker import Broker, Caller, errors
from llmbroker.models import ApiKey, KeySource, Message
from tenants.errors import NotFound
from tenants.models import ProviderKey
from tenants.payers import parse_ref
from tenants.services.keys import note_refusal
from tenants.vault import open_value

QUESTION: list[Message] = [{"role": "user", "content": "Hi"}]
SMALLEST = {"max_tokens": 1}
PATIENCE = 15.0
"""Seconds that a check may take: somebody waits for the page."""


class Standing(StrEnum):
    """What a provider thinks of a key."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class KeyCheck:
    """What came of it: ``llm`` was asked, ``detail`` is what it said, with keys scrubbed."""

    standing: Standing
    llm: str
    detail: str = ""

    @property
    def sentence(self) -> str:
        """For people."""
        said = f": {self.detail}" if self.detail else "."
        if self.standing is Standing.ACCEPTED:
            return f"{self.llm} accepts this key{said}"
        if self.standing is Standing.REFUSED:
            return f"{self.llm} refuses this key{said}"
        return f"Whether {self.llm} accepts this key could not be found out{said}"


def check_key(*, key: ProviderKey, broker: Broker) -> KeyCheck:
    """Ask a model of the key's scope that is called with such a key.

    A refused key is marked as calls mark it. Raises NotFound where there is no such model,
    SecretUnavailable where the stored value does not open.
    """
    value = open_value(key)
    caller = broker.for_scope(str(key.scope_id))
    name = _model_paid_with(key, caller)
    paying = ApiKey(str(key.pk), value.reveal(), KeySource.OWN)
    try:
        caller.direct(name=name, key=paying).chat(QUESTION, params=SMALLEST, timeout=PATIENCE)
    except errors.LLMRequestError as error:
        checked = KeyCheck(_standing(error), name, str(error))
    else:
        checked = KeyCheck(Standing.ACCEPTED, name)
    if checked.standing is Standing.REFUSED:
        note_refusal(key_id=key.pk, value=value, detail=checked.detail)
    return checked


def _model_paid_with(key: ProviderKey, caller: Caller) -> str:
    for name, state in caller.snapshot().models.items():
        if parse_ref(state.config.api_key_ref)[0] == key.ref:
            return name
    raise NotFound(
        f"No model of this scope is called with {key.ref}: nobody can be asked.",
        code="no_model_for_key",
    )


def _standing(error: errors.LLMRequestError) -> Standing:
    if isinstance(error, errors.AuthError):
        return Standing.REFUSED
    # Keys are looked at before limits; and one token may be no answer that we take for one.
    if isinstance(error, errors.RateLimitError | errors.InvalidProviderResponseError):
        return Standing.ACCEPTED
    return Standing.UNKNOWN
