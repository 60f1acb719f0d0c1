"""Threads: what is said in them, and whose turn it is.

One run at a time goes on in a thread. Who changes a thread locks its row, and locks no run after
that but those that nobody else has: so no two wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, Max, OuterRef

from agents.messages import MAX_MESSAGES
from agents.models import Event, Run, Thread, ThreadMessage
from agents.models.webhooks import ENDS
from agents.services.doorbell import ring
from llmbroker.models import Message
from llmbroker.text import storable_json
from tenants.caller import Caller
from tenants.errors import Conflict
from tenants.selectors import existing

Strategy = Literal["reject", "enqueue", "interrupt"]
STRATEGIES: tuple[Strategy, ...] = ("reject", "enqueue", "interrupt")

BATCH = 100


@transaction.atomic
def create_thread(
    *, caller: Caller, messages: Sequence[Message] = (), metadata: Mapping[str, str] | None = None
) -> Thread:
    """A thread of the caller's scope."""
    thread = Thread.objects.create(
        tenant=caller.tenant, scope=caller.scope, metadata=metadata or {}
    )
    add_messages(thread, messages)
    return thread


@transaction.atomic
def say(*, thread: Thread, message: Message) -> ThreadMessage:
    """Add one message, which the next run reads."""
    thread = locked(thread.pk)
    _require_room(thread, 1)
    return add_messages(thread, [message])[0]


@transaction.atomic
def delete_thread(*, thread: Thread) -> None:
    """Remove a thread and what was said in it; its runs stay. Conflict while one is going."""
    thread = locked(thread.pk)
    if _going(thread).exists() or _waiting(thread).exists():
        raise Conflict("A run of this thread is not over.", code="thread_busy")
    thread.delete()


def locked(thread_id: UUID | None) -> Thread:
    """The thread, which nobody else changes until the transaction ends. Raises NotFound."""
    return existing(Thread.objects.select_for_update().filter(pk__in=[thread_id]), "thread")


def add_messages(
    thread: Thread, messages: Iterable[Message], run_id: UUID | None = None
) -> list[ThreadMessage]:
    """Add to a thread that the caller's transaction has locked or made."""
    last = thread.messages.aggregate(last=Max("number"))["last"] or 0
    added = [
        ThreadMessage(thread=thread, number=number, message=storable_json(message), run_id=run_id)
        for number, message in enumerate(messages, start=last + 1)
    ]
    return ThreadMessage.objects.bulk_create(added)


def join(run: Run, own: int, strategy: Strategy) -> None:
    """Give a new run its turn in its thread, or have it wait for one. Raises Conflict.

    ``own`` is how many messages at its end are its own. The thread is locked until the caller's
    transaction, which stores the run, ends.
    """
    if run.thread_id is None:
        return
    thread = locked(run.thread_id)
    _require_room(thread, own)
    run.history_index = len(run.messages) - own
    if not _going(thread).exists():
        _take_turn(run, thread)
    elif strategy == "reject":
        raise Conflict("A run of this thread is not over.", code="thread_busy")


def locked_unfinished(thread_id: UUID) -> list[UUID]:
    """The runs of a thread that go on or wait, the waiting ones first.

    Their rows are locked, all before the thread's, to the end of the caller's transaction.
    """
    runs = Run.objects.filter(thread=thread_id).exclude(status__in=Run.TERMINAL)
    ids = runs.order_by("id").select_for_update().values_list("id", flat=True)
    return [*reversed(ids)]


def follow_up(events: Sequence[Event]) -> None:
    """Where runs of threads have ended: say in the thread what they said, and start the next one.

    In the transaction that ends them.
    """
    ended = {event.run_id for event in events if event.type in ENDS}
    if not ended:
        return
    runs = Run.objects.filter(id__in=ended, thread__isnull=False).defer("messages")
    for run in runs.order_by("thread", "id"):
        thread = locked(run.thread_id)
        if run.status == Run.Status.COMPLETED and run.output_text:
            last: Message = {"role": "assistant", "content": run.output_text}
            add_messages(thread, [last], run.id)
        start_next(thread)


def start_next(thread: Thread) -> None:
    """Give the run that has waited longest its turn, if the thread is free. It must be locked."""
    if _going(thread).exists():
        return
    # One that is being cancelled just now is passed over: whoever cancels it comes here next.
    run = _waiting(thread).select_for_update(skip_locked=True, of=("self",)).first()
    if run is not None:
        _take_turn(run, thread)
        run.save(update_fields=["messages", "history_index"])
        transaction.on_commit(ring)


def start_held() -> int:
    """Start the runs that wait for their turn in a thread where nothing goes on: whoever was to
    start one has passed it over or was rolled back. Returns how many threads were looked at."""
    going = Run.objects.filter(thread=OuterRef("thread"), history_index=None)
    held = Run.objects.filter(
        ~Exists(going.exclude(status__in=Run.TERMINAL)),
        thread__isnull=False,
        history_index__isnull=False,
        status=Run.Status.QUEUED,
    )
    threads = list(held.order_by().values_list("thread", flat=True).distinct()[:BATCH])
    for thread_id in threads:
        with transaction.atomic():
            free = Thread.objects.select_for_update(skip_locked=True).filter(pk=thread_id).first()
            if free is not None:
                start_next(free)
    return len(threads)


def _require_room(thread: Thread, more: int) -> None:
    if thread.messages.count() + more > MAX_MESSAGES:
        raise Conflict(f"A thread has {MAX_MESSAGES} messages at most.", code="thread_full")


def _take_turn(run: Run, thread: Thread) -> None:
    index = run.history_index or 0
    own: list[Any] = run.messages[index:]
    said = thread.messages.order_by("number").values_list("message", flat=True)
    run.messages = [*run.messages[:index], *said, *own]
    run.history_index = None
    add_messages(thread, own, run.id)


def _going(thread: Thread) -> Any:
    return thread.runs.filter(history_index=None).exclude(status__in=Run.TERMINAL)


def _waiting(thread: Thread) -> Any:
    waiting = thread.runs.filter(history_index__isnull=False, status=Run.Status.QUEUED)
    return waiting.order_by("created_at", "id")
