"""A worker's runs: taken from the queue in turn, worked on side by side, handed over at its end.

One task per run on the broker's event loop, one thread for the database, one for heartbeats.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from agents.services.advance import RunAtWork, Tools, Wish
from agents.services.dispatch import Claimed, Queue, claim, claim_runs, queues
from agents.services.doorbell import ring
from agents.services.heartbeat import Heartbeat
from agents.services.leases import Lease
from agents.services.ledger import Ledger
from agents.streams.telling import Telling
from llmbroker import Broker

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """How a worker goes about it; all but ``slots`` and ``spare`` in seconds."""

    slots: int = 1000
    """Runs of one tenant at work at once."""
    spare: float = 0.1
    """As a part of ``slots``, how many more there are for others."""
    slice: float = 10.0
    """How long a run may work on while another tenant waits for its slot."""
    look: float = 0.5
    """How long until the queue is looked at though nobody rang."""
    between: float = 0.02
    """How long between two claims at least, so that slots that come free are filled together."""
    hand_over: float = 5.0
    """How long a worker that is being stopped waits for model calls."""
    give_up: float = 25.0
    """How long it waits for tools that must not be cut off."""


class RunWorker:
    """Takes runs and works on them, from ``start`` (or the first ``wake``) to ``stop``."""

    def __init__(
        self, broker: Broker, tools: Tools, *, pace: Pace = Pace(), ledger: Ledger | None = None
    ) -> None:
        self._broker = broker
        self._tools = tools
        self._pace = pace
        self._ledger = ledger or Ledger()
        self._heart = Heartbeat(self._ledger, cancelled=self._cancel, lost=self._lose)
        self._at_work: dict[Lease, tuple[RunAtWork, float]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._telling = Telling()
        self._bell = asyncio.Event()
        self._freed = asyncio.Event()
        self._stopping = False
        self._left_some = False
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin to take runs, in a thread that returns to nobody. Does nothing if it has begun."""
        with self._lock:
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(
                    target=lambda: self._broker.run(self._serve()), name="run-worker", daemon=True
                )
                self._thread.start()

    def wake(self) -> None:
        """The bell has rung."""
        self.start()
        self._tell(self._look)

    def begin_stop(self) -> None:
        """Take no more runs, and hand over those at work; ``stop`` waits for it."""
        self._stopping = True  # no lock: signal handlers call this
        self._tell(self._look)

    def stop(self) -> None:
        """Hand the runs over to other workers: each at its next boundary, within a time."""
        self.begin_stop()
        if self._thread is not None:
            self._thread.join()
        self._heart.close()
        self._ledger.close()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with self._telling.looking():
            while not self._stopping:
                try:
                    await self._take_turn()
                except Exception:
                    log.exception("runs cannot be taken")
                    await _set_within(self._bell, self._pace.look)
            await self._hand_over()

    async def _take_turn(self) -> None:
        """Fill the free slots, and wait until there may be something to do."""
        self._bell.clear()
        self._freed.clear()
        free = round(self._pace.slots * (1 + self._pace.spare)) - len(self._at_work)
        claimed = await self._ledger.ask(partial(self._claim, free)) if free else []
        for each in claimed:
            self._begin(each)
        if len(claimed) == free:  # all slots are taken, and more runs may wait
            await self._make_room()
        # Where nothing was found, a slot that comes free changes nothing.
        is_worth_a_look = self._freed if claimed or not free else self._bell
        await _set_within(is_worth_a_look, self._pace.look)
        await asyncio.sleep(self._pace.between)

    def _claim(self, free: int) -> list[Claimed]:
        held = Counter(work.run.tenant_id for work, _ in [*self._at_work.values()])
        return claim_runs(slots=free, held=held, share=self._pace.slots)

    def _look(self) -> None:
        self._bell.set()
        self._freed.set()

    def _begin(self, claimed: Claimed) -> None:
        work = RunAtWork(
            claimed,
            broker=self._broker.asynchronous,
            tools=self._tools,
            ledger=self._ledger,
            telling=self._telling,
        )
        self._at_work[claimed.lease] = work, time.monotonic()
        task = asyncio.ensure_future(self._advance(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _advance(self, work: RunAtWork) -> None:
        try:
            with self._heart.keeping(work.lease):
                await work.advance()
        except Exception:
            log.exception("run %s was left by its worker", work.run.id)
        finally:
            del self._at_work[work.lease]
            self._left_some |= work.wish is not Wish.GO_ON
            self._freed.set()

    async def _make_room(self) -> None:
        """Have as many runs put back as tenants wait that have less at work than others."""
        waiting = await self._ledger.ask(queues)
        if waiting:
            for work in crowding_out(waiting, self._at_work.values(), after=self._pace.slice):
                work.want(Wish.PUT_BACK)

    async def _hand_over(self) -> None:
        self._want_all(Wish.HAND_OVER)
        await self._all_left(within=self._pace.hand_over)
        self._want_all(Wish.CUT)
        await self._all_left(within=self._pace.give_up - self._pace.hand_over)
        for task in self._tasks:
            task.cancel()
        await self._all_left(within=1.0)
        if self._left_some:
            await asyncio.to_thread(ring)

    async def _all_left(self, *, within: float) -> None:
        if self._tasks:
            await asyncio.wait([*self._tasks], timeout=within)

    def _want_all(self, wish: Wish) -> None:
        for work, _ in [*self._at_work.values()]:
            work.want(wish)

    def _cancel(self, lease: Lease) -> None:
        self._tell(partial(self._want, lease, Wish.CANCEL))

    def _lose(self, lease: Lease) -> None:
        self._tell(partial(self._want, lease, Wish.LOST))

    def _want(self, lease: Lease, wish: Wish) -> None:
        if lease in self._at_work:
            self._at_work[lease][0].want(wish)

    def _tell(self, action: Callable[[], Any]) -> None:
        """Do it on the loop, if that is there."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(action)


def crowding_out(
    waiting: Iterable[Queue], at_work: Iterable[tuple[RunAtWork, float]], *, after: float
) -> list[RunAtWork]:
    """The runs that have been at work for ``after`` seconds and belong to the tenants that are
    served most, one for each waiting tenant that is served less."""
    now = time.monotonic()
    used: dict[UUID, list[RunAtWork]] = {}
    counts: Counter[UUID] = Counter()
    for work, began in at_work:
        counts[work.run.tenant_id] += 1
        if now - began >= after and work.wish is Wish.GO_ON:
            used.setdefault(work.run.tenant_id, []).append(work)
    found = []
    for queue in sorted(waiting, key=lambda queue: queue.busy / queue.weight):
        most = max(used, key=lambda tenant: counts[tenant], default=None)
        if most is None or counts[most] <= counts[queue.tenant_id] + 1:
            break
        found.append(used[most].pop())
        counts[most] -= 1
        if not used[most]:
            del used[most]
    return found


async def _set_within(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


def advance_run(
    *, run_id: UUID, broker: Broker, tools: Tools, ledger: Ledger | None = None
) -> None:
    """Work on one run out of its turn, and return when it is over or must wait.

    Does nothing if it is not due, or somebody else's now. For tests.
    """
    own = ledger is None
    ledger = ledger or Ledger()
    try:
        claimed = ledger.call(partial(claim, run_id))
        if claimed is not None:
            broker.run(_work_on(claimed, broker, tools, ledger))
    finally:
        if own:
            ledger.close()


async def _work_on(claimed: Claimed, broker: Broker, tools: Tools, ledger: Ledger) -> None:
    telling = Telling()
    work = RunAtWork(
        claimed, broker=broker.asynchronous, tools=tools, ledger=ledger, telling=telling
    )
    loop = asyncio.get_running_loop()

    def want(wish: Wish, _: Lease) -> None:
        loop.call_soon_threadsafe(work.want, wish)

    heart = Heartbeat(ledger, cancelled=partial(want, Wish.CANCEL), lost=partial(want, Wish.LOST))
    try:
        async with telling.looking():
            with heart.keeping(work.lease):
                await work.advance()
    finally:
        await asyncio.to_thread(heart.close)
