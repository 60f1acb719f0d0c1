"""The models that come with the engine, read once: the free-tier pool and the paid aliases."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from llmbroker.catalog.document import ModelList, Provider, load_model_list
from llmbroker.errors import UnknownModelError
from llmbroker.models import LLMConfig

_FOLDER = Path(__file__).parent


@cache
def pool_list() -> ModelList:
    """The pool with what is known about it."""
    return load_model_list(_FOLDER / "pool.toml")


@cache
def paid_list() -> ModelList:
    """The paid models with what is known about them."""
    return load_model_list(_FOLDER / "paid.toml")


def pool() -> list[LLMConfig]:
    """The free-tier models that a broker without a registry routes over."""
    return pool_list().configs


def aliases() -> dict[str, LLMConfig]:
    """The paid models by alias."""
    return {config.alias: config for config in paid_list().configs if config.alias is not None}


def alias(name: str) -> LLMConfig:
    """The paid model called ``name``; UnknownModelError lists the aliases there are."""
    known = aliases()
    if name not in known:
        raise UnknownModelError(f"no model has the alias {name!r}; there are {', '.join(known)}")
    return known[name]


def providers() -> list[Provider]:
    """Everybody the catalog knows, each once; the pool's view of a provider comes first."""
    return list({**paid_list().providers, **pool_list().providers}.values())


def key_help(ref: str) -> str | None:
    """How one gets the key called ``ref``, where the catalog knows."""
    return {**paid_list().key_help, **pool_list().key_help}.get(ref)
