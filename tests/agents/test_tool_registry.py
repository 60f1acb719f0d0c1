"""Plugins are found by name, and a wrong one is a clear error at its first use."""

import threading
import time

import pytest
from django.core.exceptions import ImproperlyConfigured

from agents.native_tools import TOOLS
from agents.time_limit import within
from agents.tool_registry import ToolRegistry, load_plugins
from tests.agents.helpers import a_tool


def test_the_native_tools_are_a_plugin():
    assert list(load_plugins(["agents.native_tools"])) == ["today", "weather", "calculate"]


@pytest.mark.parametrize("path", ["no.such.module", "json"])
def test_a_plugin_that_is_none_is_named(path):
    with pytest.raises(ImproperlyConfigured, match=f"AGENT_PLUGINS.*{path}"):
        load_plugins([path])


def test_a_plugin_of_something_else_is_named(monkeypatch):
    monkeypatch.setattr("agents.native_tools.TOOLS", [print])
    with pytest.raises(ImproperlyConfigured, match=r"agents\.native_tools"):
        load_plugins(["agents.native_tools"])


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ImproperlyConfigured, match="today"):
        ToolRegistry([*TOOLS, a_tool("today", dict)])


def test_a_function_within_its_time_gives_its_value_or_raises_its_error():
    assert within(5, lambda: 2) == 2
    with pytest.raises(TimeoutError, match="the tool's own"):
        within(5, _raise)


def test_a_function_beyond_its_time_is_not_waited_for():
    release = threading.Event()
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no result within 0\.01 seconds"):
        within(0.01, lambda: release.wait(30))
    release.set()
    assert time.monotonic() - began < 5


def _raise():
    raise TimeoutError("the tool's own")
