"""The failure wall, for tests of what routing does around it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.wall import Wall


@pytest.fixture
def wall() -> Iterator[Wall]:
    with Wall(pause=0.3) as wall:
        yield wall
