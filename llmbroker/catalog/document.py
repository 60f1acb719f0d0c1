"""A model list in TOML: ``[[llms]]`` rows, and ``[providers.ID]`` tables for what rows share.

    [providers.groq]
    base_url    = "https://api.groq.com/openai/v1"
    api_key_ref = "GROQ_API_KEY"
    key_help    = "Create a key at https://console.groq.com/keys."

    [[llms]]
    provider = "groq"
    model    = "openai/gpt-oss-120b"

    [[llms]]                        # a row may as well stand alone
    name        = "local"
    base_url    = "http://localhost:11434/v1"
    model       = "llama3.2"
    api_key_ref = ""                # this server needs no key

A row's own fields win over its provider's; ``name`` defaults to ``model``. Help on a key of
a row without provider goes into ``[keys.REF]`` as ``help``.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from llmbroker.catalog.fields import Table, base_url_fault, key_ref_fault
from llmbroker.errors import LLMBrokerError
from llmbroker.models import LLMConfig


@dataclass(frozen=True, slots=True)
class Provider:
    """Who serves models, and how one gets a key there."""

    id: str
    label: str
    base_url: str
    api_key_ref: str
    key_help: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: the model, and where and when its id was seen."""

    config: LLMConfig
    provider: str | None = None
    label: str = ""
    sources: tuple[str, ...] = ()
    verified: date | None = None

    @property
    def confirmed(self) -> bool:
        """Whether more than one source knows the id."""
        return len(self.sources) > 1


@dataclass(frozen=True, slots=True)
class ModelList:
    """A whole file."""

    entries: tuple[Entry, ...]
    providers: Mapping[str, Provider]
    key_help: Mapping[str, str]

    @property
    def configs(self) -> list[LLMConfig]:
        """The models, in the file's order."""
        return [entry.config for entry in self.entries]


def load_model_list(path: str | Path) -> ModelList:
    """Read and check a file; LLMBrokerError says what is wrong with it, and where."""
    try:
        with Path(path).open("rb") as file:
            values = tomllib.load(file)
    except FileNotFoundError:
        raise LLMBrokerError(f"{path}: there is no such file") from None
    except OSError as error:
        raise LLMBrokerError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError:
        raise LLMBrokerError(f"{path}: is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise LLMBrokerError(f"{path}: is not valid TOML: {error}") from error
    return model_list(values, source=str(path))


def load_models(path: str | Path) -> list[LLMConfig]:
    """The models of a user's own file."""
    return load_model_list(path).configs


def model_list(values: Mapping[str, object], *, source: str) -> ModelList:
    """Check the parsed values of a file; ``source`` names it in errors."""
    root = Table(values, source)
    providers = {
        identity: _provider(identity, Table(table, f"{source}: [providers.{identity}]"))
        for identity, table in root.take("providers", dict, {}).items()
    }
    help_texts = {provider.api_key_ref: provider.key_help for provider in providers.values()}
    for ref, table in root.take("keys", dict, {}).items():
        help_texts[ref] = _help(table, f"{source}: [keys.{ref}]")
    entries = tuple(
        _entry(Table(row, f"{source}: [[llms]] {number}"), providers)
        for number, row in enumerate(root.take("llms", list, []), start=1)
    )
    root.finish()
    _refuse_repeats(source, "name", (entry.config.name for entry in entries))
    _refuse_repeats(source, "alias", (entry.config.alias for entry in entries))
    return ModelList(entries, providers, {ref: text.strip() for ref, text in help_texts.items()})


def _provider(identity: str, table: Table) -> Provider:
    provider = Provider(
        id=identity,
        label=table.take("label", str, identity),
        base_url=_base_url(table),
        api_key_ref=_key_ref(table),
        key_help=table.take("key_help", str, "").strip(),
    )
    table.finish()
    return provider


def _help(value: object, where: str) -> str:
    # A model list of the seed library says more about a key than this; only its help is used.
    return value if isinstance(value, str) else Table(value, where).take("help", str, "")


def _entry(table: Table, providers: Mapping[str, Provider]) -> Entry:
    provider = _provider_of(table, providers)
    if provider is not None:
        table.inherit(base_url=provider.base_url, api_key_ref=provider.api_key_ref)
    entry = Entry(
        config=_config(table),
        provider=provider.id if provider is not None else None,
        label=table.take("label", str, ""),
        sources=table.texts("sources"),
        verified=table.take("verified", date),
    )
    table.finish()
    return entry


def _config(table: Table) -> LLMConfig:
    model = table.require("model")
    name = table.take("name", str, model)
    table.where += f" ({name})"
    try:
        return LLMConfig(
            name=name,
            base_url=_base_url(table),
            model=model,
            api_key_ref=_key_ref(table),
            parallel=table.take("parallel", int),
            weight=table.take("weight", float, 0.0),
            alias=table.take("alias", str),
            tool_params=table.take("tool_params", dict, {}),
            context_window=_context_window(table),
        )
    except ValueError as error:
        raise table.fault(str(error)) from error


def _provider_of(table: Table, providers: Mapping[str, Provider]) -> Provider | None:
    identity = table.take("provider", str)
    if identity is None:
        return None
    if identity not in providers:
        raise table.fault(f"there is no [providers.{identity}]")
    return providers[identity]


def _base_url(table: Table) -> str:
    url = table.require("base_url")
    if fault := base_url_fault(url):
        raise table.fault(f"base_url {fault}")
    return url


def _key_ref(table: Table) -> str:
    ref = table.take("api_key_ref", str)
    if ref is None:
        raise table.fault('api_key_ref is missing ("" says that no key is needed)')
    if fault := key_ref_fault(ref):
        raise table.fault(f"api_key_ref {fault}")
    return ref


def _context_window(table: Table) -> int | None:
    tokens = table.take("context_window", int)
    if tokens is not None and tokens < 1:
        raise table.fault("context_window is at least 1")
    return tokens


def _refuse_repeats(source: str, field: str, values: Iterable[str | None]) -> None:
    counts = Counter(value for value in values if value is not None)
    repeated = sorted(value for value, count in counts.items() if count > 1)
    if repeated:
        raise LLMBrokerError(f"{source}: {field} {repeated[0]} is used by more than one row")
