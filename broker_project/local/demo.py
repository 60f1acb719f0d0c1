"""`make demo`: one command from a fresh checkout to an agent's answer, everything real.

Options, all from the environment: DEMO_PROVIDER (openai, anthropic, google, … or local or
practice), DEMO_MODEL, DEMO_BASE_URL with DEMO_API_KEY for a server of one's own, DEMO_TASK,
DEMO_PORT, and ONCE=1 to end after the answer: exit status 0 only if the run completed.
"""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from broker_project.local import parts
from broker_project.local.api import Api, ApiError, NotReadyError
from broker_project.local.demo_tenant import CommandError, account, offer, run_command
from broker_project.local.demo_view import View
from broker_project.local.embedded import ServicesUnavailableError
from broker_project.local.files import locked
from broker_project.local.json_http import UnreachableError
from broker_project.local.paths import data_dir, log_dir
from broker_project.local.ports import HOST, PortError, free_port, port_by
from broker_project.local.processes import EndedError, Processes, interruptible
from broker_project.local.providers import ChoiceError, ModelChoice, choose, models_at
from broker_project.local.services import services

TASK = (
    "Bugun qaysi kun va Toshkentda ob-havo qanday? "
    "Agar 30 darajadan issiq bo‘lsa, 30 * 1.8 + 32 ni hisobla."
)
TOOLS = ["today", "weather", "calculate"]
POLL_SECONDS = 0.2
TERMINAL = {"completed", "failed", "cancelled", "incomplete", "expired"}
INTERRUPTED = 130


class TwoDemosError(Exception):
    """Another demo has this folder."""


PROBLEMS = (
    *(ApiError, ChoiceError, CommandError, EndedError, NotReadyError, PortError),
    *(ServicesUnavailableError, TimeoutError, TwoDemosError, UnreachableError),
)


def main() -> int:
    """The exit status."""
    os.environ["BROKER_LOCAL"] = "1"
    os.environ.setdefault("BROKER_ALLOW_PRIVATE_ADDRESSES", "1")  # the model may run nearby
    once = os.environ.get("ONCE", "") not in {"", "0"}
    view = View()
    try:
        with interruptible(), _only_one(), services(), Processes() as processes:
            return _demonstrate(view, processes, once=once)
    except PROBLEMS as error:
        view.problem(str(error))
        return 1
    except KeyboardInterrupt:
        view.console.print("\nStopped.")
        return INTERRUPTED


@contextmanager
def _only_one() -> Iterator[None]:
    """Two demos would call the practice model of whichever began last, and lose it with that."""
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(data_dir() / "demo.lock", wait=False))
        except BlockingIOError:
            raise TwoDemosError(
                "A demo is running here already. End it with Ctrl-C in its terminal, or give this"
                " one a folder of its own: BROKER_DATA_DIR=/tmp/demo make demo"
            ) from None
        yield


def _demonstrate(view: View, processes: Processes, *, once: bool) -> int:
    choice = choose(os.environ)
    url = _start(view, processes)
    who = account(url)
    api = Api(url, who.token)
    view.stage(f"Tenant {who.slug}, its owner and an access token")
    offer(api, _started(processes, choice))
    view.stage(f"Model: {choice.label}")
    run = _play(view, processes, api, choice)
    if not once:
        view.invitation(url, who)
        _serve(view, processes)
    return 0 if run["status"] == "completed" else 1


def _start(view: View, processes: Processes) -> str:
    """Migrate and start web and worker; the web server's URL."""
    run_command("migrate", "--no-input")
    view.stage("The database is up, its tables are made")
    port = port_by("DEMO_PORT")
    url = f"http://{HOST}:{port}"
    processes.start("web server", parts.web(port), log_dir() / "web.log")
    processes.start("worker", parts.worker(), log_dir() / "worker.log")
    processes.wait_until(Api(url).answers, "The web server")
    Api(url).require_ready()
    view.stage(f"Web server on {url} and a worker (logs in {log_dir()})")
    return url


def _started(processes: Processes, choice: ModelChoice) -> ModelChoice:
    """The choice with a base URL that answers: the practice model is started here."""
    if choice.base_url:
        return choice
    port = free_port()
    base_url = f"http://{HOST}:{port}/v1"
    processes.start("practice model", parts.practice_model(port), log_dir() / "practice_model.log")
    processes.wait_until(lambda: models_at(base_url) is not None, "The practice model")
    return replace(choice, base_url=base_url)


def _play(view: View, processes: Processes, api: Api, choice: ModelChoice) -> Any:
    """Submit the task as a run and show what comes of it; the run as it ended."""
    task = os.environ.get("DEMO_TASK") or TASK
    view.task(task, choice.label)
    messages = [{"role": "user", "content": task}]
    run = api.post("runs", messages=messages, tools=TOOLS, max_steps=8, operation="demo")
    with view.waiting():
        run = _follow(view, processes, api, run["id"])
    view.outcome(run)
    view.journal(api.get(f"calls?trace_id={run['trace_id']}&limit=200")["data"])
    return run


def _follow(view: View, processes: Processes, api: Api, run_id: str) -> Any:
    """Show each step once it has ended, until the run has."""
    shown = 0
    while True:
        processes.check()
        # The state first: steps read after a final one are all there are.
        run = api.get(f"runs/{run_id}")
        steps = api.get(f"runs/{run_id}/steps?limit=200")["data"]
        while shown < len(steps) and steps[shown]["status"] not in {"queued", "in_progress"}:
            view.step(steps[shown])
            shown += 1
        if run["status"] in TERMINAL:
            return run
        time.sleep(POLL_SECONDS)


def _serve(view: View, processes: Processes) -> None:
    """Stay up until Ctrl-C, or until a part ends by itself."""
    try:
        while True:
            processes.check()
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        view.console.print("\nStopping …")


if __name__ == "__main__":
    raise SystemExit(main())
