"""What templates become here and in Semantic Kernel, and why where it is not the same.

    .venv/bin/python benchmarks/templates_compare.py

Prints the table of docs/kernel.md. Fails when a difference has no reason, or a reason no
difference.
"""

from __future__ import annotations

import json
from pathlib import Path

import environments
from template_cases import CASES, Case

SCRIPT = Path(__file__).resolve().parent / "templates_rendered.py"


def main() -> None:
    """Compare and print."""
    ours = json.loads(environments.run("llmbroker", SCRIPT, "ours"))
    theirs = json.loads(environments.run("Semantic Kernel", SCRIPT, "semantic_kernel"))
    rows = []
    for case, our, their in zip(CASES, ours, theirs, strict=True):
        differs = _comparable(our) != _comparable(their)
        if differs != bool(case.why):
            raise SystemExit(f"{case.template!r} became {our!r} here and {their!r} there")
        if differs:
            rows.append(_row(case, our, their))
    print(f"{len(CASES)} templates; {len(CASES) - len(rows)} become the same, and these do not:\n")
    print("| template | values | Semantic Kernel | llmbroker | why |")
    print("| --- | --- | --- | --- | --- |")
    print("\n".join(rows))


def _comparable(outcome: list[list[str]] | str) -> object:
    """Errors are the same when they come at the same time; their words are each library's own."""
    if not isinstance(outcome, str):
        return outcome
    return "syntax" if outcome.startswith("TemplateSyntaxError") else "render"


def _row(case: Case, our: list[list[str]] | str, their: list[list[str]] | str) -> str:
    values = json.dumps(case.variables) if case.variables else ""
    cells = (f"`{case.template}`", values and f"`{values}`", _cell(their), _cell(our), case.why)
    return f"| {' | '.join(cells)} |"


def _cell(outcome: list[list[str]] | str) -> str:
    if isinstance(outcome, str):
        return f"`{outcome.partition(':')[0]}`"
    if not outcome:
        return "no message"
    return ", ".join(f"{role}: `{text}`" if text else f"{role}: empty" for role, text in outcome)


if __name__ == "__main__":
    main()
