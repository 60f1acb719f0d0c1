"""Schemas of 100 functions, and a loop with eight parallel tools, beside other libraries.

    .venv/bin/python benchmarks/functions.py --rounds 5

Each library runs in an environment of its own (.data/bench/), round after round in turn,
against one model server in this process. Figures are medians; see docs/benchmarks.md for how
to read such figures.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import environments
import report
from functions_contender import ANSWER, CALLS, LIBRARIES, SLEEP

HERE = Path(__file__).resolve().parent
WHAT = {
    "schemas_ms": "schemas of 100 functions, CPU ms",
    "loop_cpu_ms": "loop, 8 coroutine tools, CPU ms",
    "slow_wall_ms": f"loop, 8 plain tools of {SLEEP * 1000:g} ms, wall ms",
}


def main() -> None:
    """Measure and print Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    facts = {**report.machine(), "rounds": f"medians of {rounds}"}
    measured = _measure(rounds)
    print("\n".join(f"- {name}: {value}" for name, value in facts.items()))
    print()
    print(_table(measured))


def _measure(rounds: int) -> dict[str, dict[str, float]]:
    taken: dict[str, dict[str, list[float]]] = {name: {} for name in LIBRARIES}
    contender = HERE / "functions_contender.py"
    with _model() as base_url:
        for number in range(rounds):
            for name in LIBRARIES:
                print(f"round {number + 1}: {name}", file=sys.stderr)
                for what in (("schemas",), ("loop", base_url)):
                    figures = json.loads(environments.run(name, contender, name, *what))
                    for figure, value in figures.items():
                        taken[name].setdefault(figure, []).append(value)
    return {
        name: {figure: statistics.median(values) for figure, values in figures.items()}
        for name, figures in taken.items()
    }


def _table(measured: dict[str, dict[str, float]]) -> str:
    others = [name for name in LIBRARIES if name != "llmbroker"]
    heads = ["", "llmbroker", *(f"{name} | ÷ ours" for name in others)]
    lines = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (1 + 2 * len(others))}"]
    for figure, label in WHAT.items():
        ours = measured["llmbroker"][figure]
        cells = [label, f"{ours:.1f}"]
        for name in others:
            value = measured[name][figure]
            cells.append(f"{value:.1f} | {value / ours:.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


class Model(BaseHTTPRequestHandler):
    """Asks for the one tool that is declared eight times at once, then answers."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """One chat completion."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if body["messages"][-1]["role"] == "tool":
            message = {"role": "assistant", "content": ANSWER}
        else:
            name = body["tools"][0]["function"]["name"]
            calls = [_call(name, number) for number in range(CALLS)]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
        self._send(message, "tool_calls" if "tool_calls" in message else "stop")

    def log_message(self, *args: object) -> None:
        """Nothing."""

    def _send(self, message: dict, finish_reason: str) -> None:
        choice = {"index": 0, "message": message, "finish_reason": finish_reason}
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "bench"}
        body = json.dumps({**answer, "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _call(name: str, number: int) -> dict:
    function = {"name": name, "arguments": json.dumps({"number": number})}
    return {"id": f"call_{number}", "type": "function", "function": function}


@contextmanager
def _model() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main()
