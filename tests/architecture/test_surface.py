"""The engine's public names, its error tree, and that importing it costs nothing but itself."""

from __future__ import annotations

import inspect
import subprocess
import sys

import llmbroker
from llmbroker import errors
from llmbroker.routing.verdict import VERDICTS
from llmbroker.routing.verdict_table import as_markdown
from llmbroker.wire.failure import Failure, FailureKind


def test_every_error_a_host_may_catch_is_public() -> None:
    defined = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    }
    assert defined <= set(llmbroker.__all__) | {"LLMRequestError"}
    assert all(name in (errors.__doc__ or "") for name in defined)


def test_all_names_in_all_exist_and_are_sorted() -> None:
    assert all(hasattr(llmbroker, name) for name in llmbroker.__all__)
    assert sorted(llmbroker.__all__, key=str.lower) == sorted(
        llmbroker.__all__, key=lambda name: name.lower()
    )


def test_every_kind_of_failure_has_a_verdict_and_an_error() -> None:
    assert set(VERDICTS) == set(FailureKind)
    for kind in FailureKind:
        assert isinstance(Failure(kind, 500).to_error("m"), llmbroker.LLMRequestError)
        assert f"| {kind.value} |" in as_markdown()


def test_the_engine_imports_without_django() -> None:
    program = (
        "import sys, llmbroker; "
        "sys.exit(any(m.split('.')[0] in {'django','celery','redis','httpx'} for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
