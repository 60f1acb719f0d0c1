"""Plugins are found by name, and a wrong one is a clear error at its first use."""

import sys
import types

import pytest
from django.core.exceptions import ImproperlyConfigured

from agents.native_tools import TOOLS
from agents.tool_registry import load_plugins
from tests.agents.helpers import a_tool, registry


def test_the_native_tools_are_a_plugin():
    tools = load_plugins(["agents.native_tools"])
    assert list(tools) == ["native-today", "native-weather", "native-calculate"]


def test_the_native_tools_answer_to_their_plain_names_too():
    tools = load_plugins(["agents.native_tools"])
    assert tools["today"] is tools["native-today"]
    chosen = tools.chosen(["today", "native-weather", "native-today", "gone"])
    assert list(chosen) == ["today", "native-weather"]
    assert [tool["function"]["name"] for tool in chosen.toolbox.schemas] == list(chosen)


def test_a_plugin_names_itself_or_is_called_by_its_module(monkeypatch):
    monkeypatch.delattr("agents.native_tools.PLUGIN")
    assert "native_tools-today" in load_plugins(["agents.native_tools"])


def test_a_plugin_with_a_name_that_templates_cannot_call_is_named(monkeypatch):
    monkeypatch.setattr("agents.native_tools.PLUGIN", "no-dashes")
    with pytest.raises(ImproperlyConfigured, match=r"agents\.native_tools"):
        load_plugins(["agents.native_tools"])


def test_a_plain_name_stays_with_the_plugin_that_had_it_first(monkeypatch):
    other = types.ModuleType("other")
    other.TOOLS = (a_tool("today", lambda: "another day"),)
    monkeypatch.setitem(sys.modules, "other", other)
    tools = load_plugins(["agents.native_tools", "other"])
    assert tools["today"].name == "native-today"
    assert tools["other-today"].name == "other-today"


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
        registry([*TOOLS, a_tool("today", dict)])
