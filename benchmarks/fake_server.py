"""A model server on loopback that costs as little as possible: raw asyncio on uvloop.

It reads just enough HTTP to keep connections alive, and answers by the number of tool results
in the request; where a stream is asked for, word by word over the latency. Prints its port, and
ends when its standard input does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

import conversation
import uvloop

HEAD_END = b"\r\n\r\n"
LENGTH = b"content-length:"


def _answer(message: dict, finish_reason: str) -> bytes:
    body = json.dumps(
        {
            "id": "chatcmpl-bench",
            "object": "chat.completion",
            "created": 1_790_000_000,
            "model": conversation.MODEL,
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
            "usage": {"prompt_tokens": 120, "completion_tokens": 18, "total_tokens": 138},
        }
    ).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + HEAD_END + body


def _tool_turn(number: int, name: str, arguments: str) -> bytes:
    function = {"name": name, "arguments": arguments}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return _answer({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls")


ANSWERS = [
    *(_tool_turn(number, *turn) for number, turn in enumerate(conversation.TURNS)),
    _answer({"role": "assistant", "content": conversation.ANSWER}, "stop"),
]


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked" + HEAD_END
)


def _chunk(delta: dict, finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    event = (
        b"data: %b\n\n" % json.dumps({"model": conversation.MODEL, "choices": [choice]}).encode()
    )
    return b"%x\r\n%b\r\n" % (len(event), event)


def _streamed(answer: bytes) -> list[bytes]:
    """The pieces of an answer as it is streamed: a tool call in one, words one by one."""
    body = json.loads(answer.partition(HEAD_END)[2])
    message, reason = body["choices"][0]["message"], body["choices"][0]["finish_reason"]
    calls = message.get("tool_calls")
    words = [f"{word} " for word in (message["content"] or "").split()]
    if words:
        words[-1] = words[-1][:-1]
    pieces = [_chunk({"content": word}) for word in words]
    if calls:
        pieces = [_chunk({"tool_calls": [{**call, "index": 0} for call in calls]})]
    usage = (
        b"data: %b\n\ndata: [DONE]\n\n"
        % json.dumps({"choices": [], "usage": body["usage"]}).encode()
    )
    end = _chunk({}, reason) + b"%x\r\n%b\r\n0\r\n\r\n" % (len(usage), usage)
    return [*pieces, end]


STREAMED = [_streamed(answer) for answer in ANSWERS]


class Connection(asyncio.Protocol):
    """One keep-alive connection; its client sends the next request after the answer."""

    def __init__(self, latency: float) -> None:
        """``latency``: seconds between a whole request and its answer."""
        self._latency = latency
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self._received += data
        head, end, body = self._received.partition(HEAD_END)
        if not end or len(body) < _length(head):
            return
        self._received = b""
        turn = min(body.count(b'"tool_call_id"'), len(ANSWERS) - 1)
        answer = ANSWERS[turn]
        if b'"stream":true' in body:
            self._stream(STREAMED[turn])
        elif self._latency:
            asyncio.get_running_loop().call_later(self._latency, self._send, answer)
        else:
            self._send(answer)

    def _stream(self, pieces: list[bytes]) -> None:
        self._send(STREAM_HEAD)
        loop = asyncio.get_running_loop()
        for number, piece in enumerate(pieces, start=1):
            loop.call_later(self._latency * number / len(pieces), self._send, piece)

    def _send(self, answer: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(answer)


def _length(head: bytes) -> int:
    lowered = head.lower()
    start = lowered.index(LENGTH) + len(LENGTH)
    return int(lowered[start:].split(b"\r\n", 1)[0])


async def _serve(latency: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(latency), "127.0.0.1", 0, backlog=4096)
    ended = asyncio.Event()
    loop.add_reader(sys.stdin, ended.set)
    print(server.sockets[0].getsockname()[1], flush=True)
    await ended.wait()


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.0, metavar="SECONDS")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(parser.parse_args().latency))


if __name__ == "__main__":
    main()
