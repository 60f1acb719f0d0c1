"""Runs an agent from the terminal, and shows what it does while it does it."""

import time
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.models import Run
from agents.selectors import run_of
from agents.services.cancelling import cancel_run
from agents.services.creation import RunRequest, create_run
from agents.streams.hearing import Hearing
from agents.terminal import Speech, line_of, summary_of
from agents.tool_sources.catalog import TenantTools
from llmbroker.errors import LimitExceededError
from tenants.authentication import caller_by_membership
from tenants.caller import Caller
from tenants.context import scope_active
from tenants.errors import ApplicationError

LOOK_EVERY = 0.2
NOBODY_AFTER = 10.0
"""Seconds after which a run that no worker has taken makes one ask whether there is one."""

INTERRUPTED = 130
STATUSES = {
    Run.Status.COMPLETED: 0,
    Run.Status.FAILED: 1,
    Run.Status.INCOMPLETE: 2,
    Run.Status.CANCELLED: 3,
    Run.Status.EXPIRED: 4,
    Run.Status.REQUIRES_ACTION: 5,
}


class Command(BaseCommand):
    """manage.py run_agent helper "What is new?" --user alice@example.com"""

    help = (
        "Run an agent as one of its tenant's people and follow the run; a worker does the work."
        " Ctrl-C cancels it. Exits with 0 completed, 1 failed, 2 incomplete, 3 cancelled,"
        " 4 expired, 5 requires action."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("slug", help="the agent's slug")
        parser.add_argument("question")
        parser.add_argument("--user", required=True, metavar="EMAIL", help="in whose scope")
        parser.add_argument("--tenant", metavar="SLUG", help="where they belong to several")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create the run, follow it, and exit by its end."""
        try:
            caller = _caller(options["user"], options["tenant"])
            with scope_active(caller.own_reach):
                run = self._run(caller, options)
        except (ApplicationError, LimitExceededError) as error:
            raise CommandError(str(error)) from None
        raise SystemExit(STATUSES[Run.Status(run.status)])

    def _run(self, caller: Caller, options: dict[str, Any]) -> Run:
        message: Any = {"role": "user", "content": options["question"]}
        is_watched = self.stdout.isatty()
        request = RunRequest(messages=[message], agent=options["slug"], deltas=is_watched)
        available = TenantTools(caller.tenant)
        run = create_run(caller=caller, request=request, available=available).run
        try:
            with Hearing(run.id) as hearing:
                return self._follow(caller, run, hearing, Speech(self._show))
        except KeyboardInterrupt:
            self.stderr.write(f"\nrun {cancel_run(run_id=run.id).status}")
            raise SystemExit(INTERRUPTED) from None

    def _follow(self, caller: Caller, run: Run, hearing: Hearing, speech: Speech) -> Run:
        seen, patience = 0, time.monotonic() + NOBODY_AFTER
        while True:
            # The state first: a run that is over had all its events then.
            run = run_of(caller, run.id)
            for event in run.events.filter(sequence_number__gt=seen):
                seen = event.sequence_number
                line = line_of(event)
                if line is not None:
                    speech.close()
                    self.stdout.write(line)
            if run.status in STATUSES:
                self.stderr.write(summary_of(run))
                if run.output_text != speech.last:
                    self.stdout.write(run.output_text or "")
                return run
            if run.status == Run.Status.QUEUED and time.monotonic() > patience:
                self.stderr.write("No worker has taken it yet. Is one running?")
                patience = float("inf")
            for told in hearing.wait(LOOK_EVERY):
                if run.deltas:
                    speech.hear(told)

    def _show(self, text: str) -> None:
        self.stdout.write(text, ending="")
        self.stdout.flush()


def _caller(email: str, tenant: str | None) -> Caller:
    user = User.objects.filter(email__iexact=email, is_active=True).first()
    if user is None:
        raise CommandError(f"Nobody has the address {email}.")
    return caller_by_membership(user, slug=tenant)
