"""HTTP tools as functions: what is sent to a tenant's server, and what its answers mean."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any, cast

import orjson
from aiohttp.abc import AbstractResolver
from uuid_utils.compat import uuid7

from agents.models import HttpTool
from agents.sealing import unseal
from agents.tool_registry import Tool
from agents.tool_sources.guarded_http import Answer, UnreachableError, post
from agents.tool_sources.signing import signed_headers
from llmbroker import Function, ModelRetry, ToolContext, ToolFailed
from llmbroker.text import clip, storable
from llmbroker.tools.function import Effect
from tenants.addresses import address_policy

MAX_SAID = 200
"""Characters that a model sees of what an error says."""

GRACE = 2.0
"""Seconds that the request's own time limit comes before the tool's, to say what happened."""

CORRECTABLE = frozenset({400, 404, 409, 422})
FINAL = frozenset({401, 403, 405, 410, 501})


class HttpToolError(Exception):
    """No result; another try may bring one."""


def http_tool(row: HttpTool, *, resolver: AbstractResolver | None = None) -> Tool:
    """``row`` as a tool. Its secret is opened for each call and shown to nobody."""

    async def call(_tool_context: ToolContext, /, **arguments: Any) -> str:
        left = _tool_context.seconds_left()
        timeout = row.timeout if left is None else min(row.timeout, left)
        body = _body(row, arguments, _tool_context)
        try:
            answer = await post(
                row.url,
                body,
                _headers(row, body, _tool_context),
                policy=address_policy(),
                timeout=timeout,
                resolver=resolver,
            )
        except UnreachableError as error:
            problem = str(error)
        else:
            return _text(answer)
        raise HttpToolError(problem)

    return Tool(
        Function(
            call,
            name=row.slug,
            description=row.description,
            parameters=row.parameters,
            effect=cast("Effect", row.effect),
            requires_approval=row.requires_approval,
            timeout=row.timeout + GRACE,
        ),
        "http",
    )


def _body(row: HttpTool, arguments: dict[str, Any], context: ToolContext) -> bytes:
    return orjson.dumps(
        {
            "tool": row.slug,
            "arguments": arguments,
            "run_id": context.run_id,
            "scope_id": context.scope,
            "tool_call_id": context.tool_call_id,
        }
    )


def _headers(row: HttpTool, body: bytes, context: ToolContext) -> dict[str, str]:
    key = _header_safe(context.idempotency_key or str(uuid7()))
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    secret = unseal(row)
    if secret is not None:
        message_id = f"msg_{hashlib.sha256(key.encode()).hexdigest()[:32]}"
        headers |= signed_headers(secret, message_id=message_id, body=body, now=datetime.now(UTC))
    return headers


def _header_safe(key: str) -> str:
    """The key itself; a digest of one that a header cannot hold, since models name their calls."""
    if key.isascii() and key.isprintable() and len(key) <= 255:
        return key
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _text(answer: Answer) -> str:
    """The result in an answer. Raises what tells the model whether to try again."""
    status = answer.status
    if 200 <= status < 300:
        return _result(answer)
    if 300 <= status < 400:
        raise ToolFailed(f"its server answered {status}, and redirects are not followed.")
    said = _said(answer)
    problem = f"its server answered {status}{': ' if said else ''}{said}"
    if status in CORRECTABLE and said:
        raise ModelRetry(f"{problem}.")
    if status in FINAL:
        raise ToolFailed(f"{problem}.")
    raise HttpToolError(problem)


def _result(answer: Answer) -> str:
    kind = answer.content_type
    is_text = kind.startswith("text/") or kind.split("+")[-1].endswith(("json", "xml"))
    if not is_text and answer.body:
        raise ToolFailed("its server answered with something that is no text.")
    return answer.body.decode("utf-8", "replace")


def _said(answer: Answer) -> str:
    """The sentence in an error's JSON, short and clean; of any other body nothing is shown."""
    try:
        body = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        return ""
    for name in ("error", "message", "detail"):
        if isinstance(body, dict):
            said = body.get(name)
            if isinstance(said, dict):
                said = said.get("message")
            if isinstance(said, str) and said.strip():
                return clip(" ".join(storable(said).split()), MAX_SAID).rstrip(".")
    return ""
