"""Tool schemas fitted to a provider."""

from __future__ import annotations

from collections.abc import Sequence

from llmbroker.models import ToolSchema
from llmbroker.wire.profiles import Profile


def fitted(tools: Sequence[ToolSchema], profile: Profile) -> list[ToolSchema]:
    """``tools`` as the provider of ``profile`` accepts them. The tools given are never changed."""
    return list(tools)
