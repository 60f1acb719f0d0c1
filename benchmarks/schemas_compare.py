"""Our schemas beside those of other libraries, for the same twenty signatures.

    .venv/bin/python benchmarks/schemas_compare.py > docs/schemas.md

Each library makes its schemas in an environment of its own (.data/bench/). What is wrong with
them is found by checking: calls that the function can take must be allowed, calls that it
cannot must not, and what the docstring says of a parameter must reach the model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import environments
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from schema_calls import DEMANDS, Call, Demand

HERE = Path(__file__).resolve().parent
NOTES = HERE / "schemas_notes.md"

COLUMNS = {
    "llmbroker": "llmbroker",
    "Semantic Kernel": "Semantic Kernel",
    "OpenAI Agents": "OpenAI Agents",
    "Pydantic AI": "Pydantic AI",
    "llmbroker, strict": "llmbroker",
    "OpenAI Agents, strict": "OpenAI Agents",
}
"""What is compared, and the environment that it runs in."""

REFUSED = "refused"


def main() -> None:
    """Print the page."""
    made = {
        column: json.loads(environments.run(library, HERE / "schemas_of.py", column))
        for column, library in COLUMNS.items()
    }
    print(NOTES.read_text("utf-8"))
    print(_table(made))
    print(_side_by_side(made))


def faults(made: dict[str, Any], demand: Demand, *, strict: bool) -> list[str]:
    """What is wrong with one schema, in a few words each."""
    if "error" in made:
        return [REFUSED if strict else made["error"]]
    parameters = made["parameters"]
    try:
        Draft202012Validator.check_schema(parameters)
    except SchemaError as error:
        return [f"no valid JSON Schema: {error.message}"]
    return [
        *_wrong_about_calls(parameters, demand, strict=strict),
        *_wrong_about_words(made, demand),
    ]


def _wrong_about_calls(
    parameters: dict[str, Any], demand: Demand, *, strict: bool
) -> Iterator[str]:
    if parameters.get("type") != "object":
        yield "the arguments are not said to be an object"
    validator = Draft202012Validator(parameters)
    for call in demand.right:
        if not any(map(validator.is_valid, _forms(call, parameters, strict=strict))):
            yield f"forbids `{_short(call, demand)}`"
    for call in demand.wrong:
        if all(map(validator.is_valid, _forms(call, parameters, strict=False))):
            yield f"allows `{_short(call, demand)}`"


def _wrong_about_words(made: dict[str, Any], demand: Demand) -> Iterator[str]:
    text = json.dumps(made["parameters"], ensure_ascii=False)
    for words in demand.words:
        if words not in text:
            yield f"does not say “{words}”"
    if any(words in made.get("description", "") for words in demand.silent):
        yield "the description holds the docstring's sections"
    if any("enum" in node and "type" not in node for node in _nodes(made["parameters"])):
        yield "an `enum` without `type`"


def _forms(call: Call, parameters: dict[str, Any], *, strict: bool) -> list[Call]:
    """The call as the schema wants it put: Pydantic AI takes a lone model's fields themselves,
    and in a strict schema what is left out is null."""
    known = parameters.get("properties", {})
    if len(call) == 1 and not call.keys() & known.keys():
        (inside,) = call.values()
        return [inside] if isinstance(inside, dict) else [call]
    return [_filled(call, parameters, parameters)] if strict else [call]


def _filled(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> Any:
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    for branch in schema.get("anyOf", ()):
        if branch.get("type") == {dict: "object", list: "array"}.get(type(value)):
            schema = branch
    if isinstance(value, list):
        return [_filled(each, schema.get("items", {}), root) for each in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    filled = {name: _filled(each, properties.get(name, {}), root) for name, each in value.items()}
    optional = [name for name in properties if name not in value and _allows_null(properties[name])]
    return {**filled, **dict.fromkeys(optional)}


def _allows_null(schema: dict[str, Any]) -> bool:
    return {"type": "null"} in schema.get("anyOf", ())


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for each in node.values():
            yield from _nodes(each)
    elif isinstance(node, list):
        for each in node:
            yield from _nodes(each)


def _table(made: dict[str, dict[str, Any]]) -> str:
    lines = [
        "## What is wrong, and how long they are",
        "",
        "A figure alone: nothing was found wrong; it is the length of the schema as compact JSON.",
        "",
        f"| signature | {' | '.join(COLUMNS)} |",
        f"| --- |{' --- |' * len(COLUMNS)}",
    ]
    sizes = dict.fromkeys(COLUMNS, 0)
    clean = dict.fromkeys(COLUMNS, 0)
    for name, demand in DEMANDS.items():
        cells = []
        for column in COLUMNS:
            schema = made[column][name]
            found = faults(schema, demand, strict="strict" in column)
            size = len(json.dumps(schema, ensure_ascii=False, separators=(",", ":")))
            if found == [REFUSED]:
                cells.append("refused: no strict form")
                continue
            sizes[column] += size if "error" not in schema else 0
            clean[column] += not found
            cells.append(f"{'; '.join(found)} ({size})" if found else str(size))
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    lines.append(f"| nothing wrong | {' | '.join(str(each) for each in clean.values())} |")
    return "\n".join([*lines, f"| length | {' | '.join(map(str, sizes.values()))} |", ""])


def _side_by_side(made: dict[str, dict[str, Any]]) -> str:
    parts = ["## Side by side", "", "The functions are in `benchmarks/signatures.py`.", ""]
    for name in DEMANDS:
        parts += [f"<details><summary><code>{name}</code></summary>", ""]
        for column in COLUMNS:
            text = json.dumps(made[column][name], ensure_ascii=False)
            parts += [f"{column}:", "", "```json", text, "```", ""]
        parts += ["</details>", ""]
    return "\n".join(parts)


def _short(call: Call, demand: Demand) -> str:
    """The call, or of a long one what sets it apart from the first right one."""
    text = json.dumps(call, ensure_ascii=False)
    first = demand.right[0]
    if len(text) <= 80 or call == first:
        return text if len(text) <= 80 else f"{text[:77]}…"
    apart = {name: value for name, value in call.items() if first.get(name) != value}
    return json.dumps(apart, ensure_ascii=False)


if __name__ == "__main__":
    main()
