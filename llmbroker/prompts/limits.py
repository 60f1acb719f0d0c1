"""How much a template may ask for, whoever wrote it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TemplateLimits:
    """``source_chars`` and ``calls`` bound what is written in one template, ``rendered_chars``
    what becomes of it. ``depth`` is how deep prompt functions may call each other, and
    ``calls_in_all`` how many functions one invocation may call through templates, at any depth.
    """

    source_chars: int = 100_000
    calls: int = 64
    rendered_chars: int = 1_000_000
    depth: int = 8
    calls_in_all: int = 256


DEFAULT_LIMITS = TemplateLimits()
