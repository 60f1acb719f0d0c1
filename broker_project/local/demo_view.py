"""What the demo prints: each stage, each step as it happens, the answer, the journal."""

import json
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.status import Status
from rich.table import Table

from broker_project.local.demo_tenant import Account

LONGEST_VALUE = 300
STATE_STYLES = {
    "completed": "green",
    "failed": "red",
    "cancelled": "yellow",
    "incomplete": "yellow",
}


class View:
    """The terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False)

    def stage(self, text: str) -> None:
        """One thing that is ready."""
        self.console.print(f"[green]✓[/] {escape(text)}", soft_wrap=True)

    def problem(self, text: str) -> None:
        """Why it does not go on."""
        self.console.print(f"[red]✗[/] {escape(text)}", soft_wrap=True)

    def task(self, text: str, model: str) -> None:
        """What is asked, and whom."""
        self._panel(f"Task for {model}", text)

    def waiting(self) -> Status:
        """A sign of life below the steps, while one waits for the next."""
        return self.console.status("working …")

    def step(self, step: dict[str, Any]) -> None:
        """One step that has ended."""
        what = _model_call(step) if step["kind"] == "model_call" else _tool_call(step)
        self.console.print(f"[dim]{step['number']:>3}[/] {what}", soft_wrap=True)

    def outcome(self, run: dict[str, Any]) -> None:
        """How the run ended, and its answer."""
        style = STATE_STYLES.get(run["status"], "yellow")
        self.console.print(
            f"\n[bold {style}]Run {run['status']}[/]{escape(_reason(run))}  [dim]{run['id']}[/]"
            f"  {_tokens(run.get('usage'))}"
        )
        if run.get("output_text"):
            self._panel("Answer", run["output_text"])

    def journal(self, calls: Iterable[dict[str, Any]]) -> None:
        """The rows that the run left in the journal, oldest first."""
        table = Table(title="Journal (tokens in and out, and whose key paid)", title_justify="left")
        for heading in ("time", "model", "status"):
            table.add_column(heading, overflow="fold")
        for heading in ("ms", "in", "out"):
            table.add_column(heading, justify="right")
        table.add_column("key")
        for call in sorted(calls, key=lambda row: row["id"]):
            usage = call.get("usage") or {}
            table.add_row(
                str(call["ts"])[11:19],
                escape(call["llm_name"]),
                call["status"],
                *(_number(call.get("latency_ms")), _number(usage.get("prompt_tokens"))),
                _number(usage.get("completion_tokens")),
                call.get("key_source") or "none",
            )
        self.console.print(table)

    def invitation(self, url: str, account: Account) -> None:
        """Where to look next."""
        self.console.print(
            f"\nAdmin     {url}/admin/\n"
            f"Login     {account.email}  password  {escape(account.password)}\n"
            f"API       {url}/api/docs/\n"
            f"Token     {account.token}\n"
            "Ctrl-C stops everything.",
            soft_wrap=True,
        )

    def _panel(self, title: str, text: str) -> None:
        self.console.print(Panel(escape(text), title=escape(title), title_align="left"))


def _model_call(step: dict[str, Any]) -> str:
    name = f"[bold]{escape(step.get('llm_name') or 'model')}[/]"
    if step["status"] != "completed":
        return f"{name} [red]{step['status']}[/] {_short((step.get('error') or {}).get('message'))}"
    calls = (step.get("message") or {}).get("tool_calls") or ()
    asked = ", ".join(escape(call["function"]["name"]) for call in calls)
    return (
        f"{name} {f'asks for [cyan]{asked}[/]' if asked else 'answers'}  {_tokens(step['usage'])}"
    )


def _tool_call(step: dict[str, Any]) -> str:
    arguments = step.get("arguments") or {}
    shown = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    text = step.get("result") or (step.get("error") or {}).get("message")
    style = "red" if step["status"] != "completed" else "default"
    return f"[cyan]{escape(step['name'])}[/]({escape(shown)}) → [{style}]{_short(text)}[/]"


def _reason(run: dict[str, Any]) -> str:
    details = run.get("last_error") or run.get("incomplete_details")
    return f": {details.get('message') or details.get('reason')}" if details else ""


def _tokens(usage: dict[str, Any] | None) -> str:
    total = (usage or {}).get("total_tokens")
    return f"[dim]{total} tokens[/]" if total else ""


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return escape(text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…")
