"""Text as the journal's columns hold it, for writing and for looking up."""

from journal.models import NAME_LIMIT
from llmbroker.text import clip, storable


def stored(text: str, limit: int = NAME_LIMIT) -> str:
    """``text`` without what PostgreSQL refuses, cut visibly to the column."""
    return clip(storable(text), limit)
