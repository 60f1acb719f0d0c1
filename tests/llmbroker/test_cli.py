"""`python -m llmbroker env | models | ask`, against a model server on loopback."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from llmbroker import catalog
from llmbroker.__main__ import main
from llmbroker.environment import parse_env
from tests.support.model_server import ModelServer, fail, say

ROOT = Path(__file__).resolve().parents[2]
KEY_REFS = {config.api_key_ref for config in [*catalog.pool(), *catalog.aliases().values()]}

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in {*KEY_REFS, *(name for name in os.environ if name.startswith("LLMBROKER_"))}:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def own_server(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> ModelServer:
    """The loopback server, named by the environment as one would name Ollama."""
    monkeypatch.setenv("LLMBROKER_BASE_URL", server.base_url)
    monkeypatch.setenv("LLMBROKER_MODEL", "llama3.2")
    return server


def own_list(home: Path, server: ModelServer) -> str:
    path = home / "models.toml"
    path.write_text(
        f'[[llms]]\nname = "house"\nalias = "mine"\nmodel = "house-model"\n'
        f'base_url = "{server.base_url}"\napi_key_ref = "HOUSE_KEY"\n',
        encoding="utf-8",
    )
    return str(path)


def program(
    *arguments: str, home: Path, stdout: IO[bytes] | int = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "llmbroker", *arguments],
        cwd=home,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )


class TestEnv:
    def test_the_template_asks_for_every_key_once(self, capsys: Capture) -> None:
        assert main(["env"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert sorted(line for line in lines if line.endswith("_KEY=") and line[0] != "#") == (
            sorted(f"{ref}=" for ref in KEY_REFS)
        )

    @pytest.mark.parametrize(
        ("section", "there", "not_there"),
        [
            ("pool", "GROQ_API_KEY=", "ANTHROPIC_API_KEY="),
            ("paid", "ANTHROPIC_API_KEY=", "GROQ_API_KEY="),
        ],
    )
    def test_a_section_asks_for_its_own_keys(
        self, section: str, there: str, not_there: str, capsys: Capture
    ) -> None:
        assert main(["env", section]) == 0
        printed = capsys.readouterr().out
        assert there in printed
        assert not_there not in printed

    def test_a_key_comes_with_where_to_get_it_and_what_it_opens(self, capsys: Capture) -> None:
        main(["env"])
        lines = capsys.readouterr().out.splitlines()
        end = lines.index("ANTHROPIC_API_KEY=")
        assert lines[end - 2].startswith("# Anthropic: opus, ")
        assert lines[end - 1].startswith("#   Create a key at https://")

    def test_the_template_reads_back_as_a_file_without_keys(
        self, capsys: Capture, caplog: pytest.LogCaptureFixture
    ) -> None:
        main(["env"])
        assert parse_env(capsys.readouterr().out) == {}
        assert caplog.messages == []

    def test_appended_to_a_file_it_hides_no_key(self, capsys: Capture) -> None:
        main(["env"])
        assert parse_env("GROQ_API_KEY=mine\n" + capsys.readouterr().out) == {
            "GROQ_API_KEY": "mine"
        }


class TestModels:
    def test_it_says_which_keys_are_there(
        self, capsys: Capture, monkeypatch: pytest.MonkeyPatch, home: Path
    ) -> None:
        monkeypatch.setenv("GROQ_API_KEY", "gsk-secret")
        (home / ".env").write_text("ANTHROPIC_API_KEY=ant-secret\nXAI_API_KEY=\n")
        assert main(["models"]) == 0
        printed = capsys.readouterr().out
        for said in ("GROQ_API_KEY is set", "ANTHROPIC_API_KEY is set", "XAI_API_KEY is missing"):
            assert said in printed
        assert "secret" not in printed

    def test_it_lists_the_pool_and_the_aliases(self, capsys: Capture) -> None:
        main(["models"])
        printed = capsys.readouterr().out
        for config in catalog.pool():
            assert config.name in printed
        for alias in catalog.aliases():
            assert f"  {alias} " in printed

    @pytest.mark.usefixtures("own_server")
    def test_it_lists_a_server_of_ones_own(self, capsys: Capture) -> None:
        main(["models"])
        assert "needs no key" in capsys.readouterr().out

    def test_it_lists_a_model_list_of_ones_own_in_place_of_the_pool(
        self, capsys: Capture, home: Path, server: ModelServer
    ) -> None:
        assert main(["models", "--registry", own_list(home, server)]) == 0
        printed = capsys.readouterr().out
        assert "HOUSE_KEY is missing" in printed
        assert catalog.pool()[0].name not in printed

    def test_a_reader_that_leaves_early_is_no_error(self, home: Path) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "wb") as nobody:
            done = program("models", home=home, stdout=nobody)
        assert (done.returncode, done.stderr) == (0, b"")

    def test_a_bad_list_is_one_clear_sentence(self, capsys: Capture, home: Path) -> None:
        (home / "models.toml").write_text("[[llms]]\n")
        assert main(["models", "--registry", "models.toml"]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err == "error: models.toml: [[llms]] 1: model is missing\n"


class TestAsk:
    def test_it_prints_the_answer(self, own_server: ModelServer, capsys: Capture) -> None:
        own_server.script(say("It is Monday."))
        assert main(["ask", "What day is it?"]) == 0
        assert capsys.readouterr().out == "It is Monday.\n"
        request = own_server.requests[0]
        assert request.body["model"] == "llama3.2"
        assert request.messages == [{"role": "user", "content": "What day is it?"}]

    def test_a_server_without_a_key_is_sent_none(
        self, own_server: ModelServer, capsys: Capture
    ) -> None:
        own_server.script(say("Hello."))
        main(["ask", "Hello?"])
        assert own_server.requests[0].authorization is None

    def test_a_key_is_sent_where_there_is_one(
        self, own_server: ModelServer, capsys: Capture, home: Path
    ) -> None:
        (home / ".env").write_text("LLMBROKER_API_KEY=house-key")
        own_server.script(say("Hello."))
        main(["ask", "Hello?"])
        assert own_server.requests[0].authorization == "Bearer house-key"

    def test_a_dash_reads_the_prompt_from_standard_input(
        self, own_server: ModelServer, monkeypatch: pytest.MonkeyPatch, capsys: Capture
    ) -> None:
        own_server.script(say("Yes."))
        monkeypatch.setattr(sys, "stdin", io.StringIO("A long\ntext"))
        assert main(["ask", "-", "--operation", "summarise"]) == 0
        assert own_server.requests[0].messages[-1]["content"] == "A long\ntext"

    def test_standard_input_that_is_no_text_is_refused(
        self, monkeypatch: pytest.MonkeyPatch, capsys: Capture
    ) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff"), "utf-8"))
        assert main(["ask", "-"]) == 1
        assert capsys.readouterr().err == "error: standard input is no text in utf-8\n"

    @pytest.mark.parametrize("called", ["mine", "house"])
    def test_a_model_is_asked_directly_by_alias_or_name(
        self,
        called: str,
        server: ModelServer,
        home: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: Capture,
    ) -> None:
        monkeypatch.setenv("HOUSE_KEY", "house-key")
        server.script(say("At your service."))
        registry = own_list(home, server)
        assert main(["ask", "--registry", registry, "--model", called, "Hello?"]) == 0
        assert capsys.readouterr().out == "At your service.\n"
        assert server.requests[0].body["model"] == "house-model"

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--model", "opsu"], "opus"),
            (["--model", "opus"], "ANTHROPIC_API_KEY"),
            (["--registry", "nowhere.toml"], "nowhere.toml: there is no such file"),
        ],
    )
    def test_what_cannot_be_asked_is_one_clear_sentence(
        self, arguments: list[str], said: str, capsys: Capture
    ) -> None:
        assert main(["ask", "Hello?", *arguments]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("error: ")
        assert captured.err.count("\n") == 1
        assert said in captured.err

    def test_without_any_key_it_says_so(self, capsys: Capture) -> None:
        assert main(["ask", "Hello?"]) == 1
        said = capsys.readouterr().err
        assert "GROQ_API_KEY" in said
        assert said.endswith("`python -m llmbroker env` says where to get keys\n")

    def test_a_refusal_by_the_server_is_one_clear_sentence(
        self, server: ModelServer, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
    ) -> None:
        monkeypatch.setenv("HOUSE_KEY", "house-secret")
        server.script(fail(401, "bad key\nhouse-secret"))
        registry = own_list(home, server)
        assert main(["ask", "--registry", registry, "--model", "mine", "Hello?"]) == 1
        captured = capsys.readouterr()
        assert captured.err.count("\n") == 1
        assert "401" in captured.err
        assert "house-secret" not in captured.err

    @pytest.mark.parametrize("prompt", ["", " \n"])
    def test_an_empty_prompt_is_refused(self, prompt: str, capsys: Capture) -> None:
        assert main(["ask", prompt]) == 1
        assert capsys.readouterr().err == "error: the prompt is empty\n"

    def test_an_operation_belongs_to_the_pool(self, capsys: Capture) -> None:
        with pytest.raises(SystemExit, match="2"):
            main(["ask", "Hello?", "--model", "opus", "--operation", "greet"])
        assert "not allowed with" in capsys.readouterr().err

    def test_as_a_program_it_prints_what_the_terminal_has_characters_for(
        self, own_server: ModelServer, home: Path
    ) -> None:
        own_server.script(say("Größe \u2192 \ud83d"))
        done = program("ask", "Hello?", home=home, PYTHONIOENCODING="latin-1")
        assert done.stderr == b""
        assert (done.returncode, done.stdout) == (0, b"Gr\xf6\xdfe ? ?\n")
