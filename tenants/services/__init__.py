"""Writes. Keyword-only; whoever calls has already decided that the caller may."""
