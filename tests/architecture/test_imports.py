"""Who may import whom (docs/architecture.md). Read from the source, so that nothing can hide."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("llmbroker", "tenants", "journal", "agents", "broker_project")

# What each package may import of ours.
ALLOWED = {
    "llmbroker": {"llmbroker"},
    "tenants": {"tenants", "llmbroker"},
    "journal": {"journal", "tenants", "llmbroker"},
    "agents": {"agents", "tenants", "llmbroker"},
    "broker_project": set(PACKAGES),
}

# The engine's layers, from the top: each may import those below it only. Modules that are not
# named (pure helpers) may be imported by all.
ENGINE_LAYERS = [
    {"__main__", "cli"},
    {"__init__"},
    {"prompts"},
    {"sync"},
    {"broker"},
    {"caller", "snapshot"},
    {"direct", "stream"},
    {"routing", "quality"},
    {"exchange"},
    {"transport"},
    {"http1"},
    {"wire"},
    {"ports", "memory", "environment", "catalog"},
]

# Inside an app, from the top.
APP_LAYERS = [
    {"urls", "admin"},
    {"views", "management"},
    {"serializers", "tasks", "adapters", "checks", "authentication"},
    {"services"},
    {"selectors"},
    {"models"},
]

FORBIDDEN_IN_ENGINE = {"django", "rest_framework", "celery", "redis", "psycopg", "httpx"}


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every module of ours as (dotted name, syntax tree); migrations are generated and left out."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                yield name, ast.parse(path.read_text("utf-8"))


def imports(name: str, tree: ast.Module) -> set[str]:
    """The modules that ``name`` imports anywhere, also inside functions."""
    package = name.rsplit(".", 1)[0]
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], base]).rstrip(".")
            found |= {f"{base}.{alias.name}" for alias in node.names} | {base}
    return found


GRAPH = {name: imports(name, tree) for name, tree in modules()}


def known(target: str) -> str | None:
    """The module of ours that an import of ``target`` reaches."""
    while target:
        for candidate in (target, f"{target}.__init__"):
            if candidate in GRAPH:
                return candidate
        target = target.rpartition(".")[0]
    return None


def test_packages_import_only_what_lies_below_them() -> None:
    wrong = [
        f"{name} imports {target}: {name.split('.')[0]} may import only"
        f" {', '.join(sorted(ALLOWED[name.split('.')[0]]))}"
        for name, targets in GRAPH.items()
        for target in targets
        if target.split(".")[0] in PACKAGES
        and target.split(".")[0] not in ALLOWED[name.split(".")[0]]
    ]
    assert not wrong, "\n".join(wrong)


def test_the_engine_knows_no_framework() -> None:
    wrong = [
        f"{name} imports {target}: the engine works without Django, Celery and databases"
        for name, targets in GRAPH.items()
        if name.startswith("llmbroker.")
        for target in targets
        if target.split(".")[0] in FORBIDDEN_IN_ENGINE
    ]
    assert not wrong, "\n".join(wrong)


def test_adapters_are_imported_by_the_composition_only() -> None:
    wrong = [
        f"{name} imports {target}: only broker_project.composition joins adapters"
        for name, targets in GRAPH.items()
        for target in targets
        if re.match(r"(tenants|journal|agents)\.adapters", target)
        and name != "broker_project.composition"
        and not name.startswith(target.rsplit(".", 1)[0])
    ]
    assert not wrong, "\n".join(wrong)


def layer_of(name: str, layers: list[set[str]]) -> int | None:
    part = name.split(".")[1]
    return next((number for number, layer in enumerate(layers) if part in layer), None)


@pytest.mark.parametrize(
    ("package", "layers"),
    [
        ("llmbroker", ENGINE_LAYERS),
        *((app, APP_LAYERS) for app in ("tenants", "journal", "agents")),
    ],
)
def test_layers_import_downwards(package: str, layers: list[set[str]]) -> None:
    wrong = []
    for name, targets in GRAPH.items():
        upper = layer_of(name, layers) if name.startswith(f"{package}.") else None
        for target in map(known, targets):
            if upper is None or target is None or not target.startswith(f"{package}."):
                continue
            lower = layer_of(target, layers)
            if lower is not None and lower < upper:
                wrong.append(f"{name} imports {target}, which lies above it")
    assert not wrong, "\n".join(sorted(set(wrong)))


def test_there_are_no_cycles() -> None:
    done: set[str] = set()
    path: list[str] = []

    def visit(name: str) -> None:
        if name in path:
            raise AssertionError(
                "an import cycle: " + " → ".join([*path[path.index(name) :], name])
            )
        if name in done:
            return
        path.append(name)
        for target in sorted({known(each) for each in GRAPH[name]} - {None, name}):
            # A package's __init__ may gather its own modules, and they import each other
            # by their full names, never through it.
            if target is not None and not target.endswith(".__init__"):
                visit(target)
        path.pop()
        done.add(name)

    for name in GRAPH:
        visit(name)


def test_a_process_that_calls_no_mcp_server_does_not_load_the_sdk():
    everything = (
        "import django, sys; django.setup()\n"
        "from broker_project.celery import app; app.loader.import_default_modules()\n"
        "import agents.services.worker\n"
        "import broker_project.urls\n"
        "print('mcp' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", everything], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["False"], done.stderr
