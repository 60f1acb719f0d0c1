"""Which models there are: the lineup that comes with the engine, and a user's own list."""

from __future__ import annotations

from llmbroker.catalog.document import (
    Entry,
    ModelList,
    Provider,
    load_model_list,
    load_models,
    model_list,
)
from llmbroker.catalog.lineup import (
    alias,
    aliases,
    key_help,
    paid_list,
    pool,
    pool_list,
    providers,
)

__all__ = [
    "Entry",
    "ModelList",
    "Provider",
    "alias",
    "aliases",
    "key_help",
    "load_model_list",
    "load_models",
    "model_list",
    "paid_list",
    "pool",
    "pool_list",
    "providers",
]
