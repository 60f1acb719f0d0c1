"""What the API description says of every operation alike: how lists and errors look."""

from typing import Any

ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["type", "code", "message", "param", "request_id"],
            "properties": {
                "type": {"type": "string"},
                "code": {"type": "string", "nullable": True},
                "message": {"type": "string"},
                "param": {"type": "string", "nullable": True},
                "request_id": {"type": "string", "nullable": True},
            },
        }
    },
}
REFUSED = {
    "description": "Refused, or failed: the error says why.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}
VERBS = ("get", "post", "put", "patch", "delete")


def lists_and_errors(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """For the settings: views name the rows of lists alone, and what they answer if all is well."""
    result["components"]["schemas"]["Error"] = ERROR
    for path in result["paths"].values():
        for verb in VERBS:
            if verb in path:
                _complete(path[verb])
    return result


def _complete(operation: dict[str, Any]) -> None:
    for response in operation["responses"].values():
        described = response.get("content", {}).get("application/json", {})
        if described.get("schema", {}).get("type") == "array":
            described["schema"] = _list_of(described["schema"])
    operation["responses"]["default"] = REFUSED


def _list_of(rows: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["object", "data", "has_more", "next_after"],
        "properties": {
            "object": {"type": "string", "enum": ["list"]},
            "data": rows,
            "has_more": {"type": "boolean"},
            # An id, or where rows have numbers, a number.
            "next_after": {"oneOf": [{"type": "string"}, {"type": "integer"}], "nullable": True},
        },
    }
