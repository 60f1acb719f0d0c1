"""Keys and a server of one's own, from environment variables and a .env file."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

import pytest

from llmbroker.environment import EnvironmentSecrets, environment_models, parse_env
from llmbroker.errors import LLMBrokerError
from llmbroker.models import ApiKey, KeySource
from llmbroker.ports import KeyChain, Secrets

SETTINGS = ("LLMBROKER_BASE_URL", "LLMBROKER_MODEL", "LLMBROKER_API_KEY")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in (*SETTINGS, "ACME_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def write_env(folder: Path, text: str) -> None:
    (folder / ".env").write_text(text, encoding="utf-8")


def resolve(secrets: EnvironmentSecrets, ref: str) -> str:
    return asyncio.run(secrets.resolve(ref))


def keys(secrets: EnvironmentSecrets, ref: str, scope: str | None = None) -> list[ApiKey]:
    return asyncio.run(secrets.keys(ref, scope=scope))


class TestReadingEnvFiles:
    @pytest.mark.parametrize(
        ("line", "value"),
        [
            ("A=1", "1"),
            ("A = 1", "1"),
            ("  A=1  ", "1"),
            ("export A=1", "1"),
            ("\texport\tA=1", "1"),
            ('A="1"', "1"),
            ("A='1'", "1"),
            ("A=1 # note", "1"),
            ('A="1" # note', "1"),
            ("A=1#2", "1#2"),
            ('A="1 # 2"', "1 # 2"),
            ("A='1 # 2' # note", "1 # 2"),
            ("A=one two", "one two"),
            ("A=it's", "it's"),
            (r'A="one \"two\" \\ \n$x"', 'one "two" \\ \n$x'),
            (r"A='one \n $x'", r"one \n $x"),
            ("A=$B", "$B"),
            ("A==", "="),
            ("A=ключ", "ключ"),
        ],
    )
    def test_an_assignment(self, line: str, value: str) -> None:
        assert parse_env(line) == {"A": value}

    @pytest.mark.parametrize("line", ["", "  ", "# A=1", "  #", "A=", "A= # note", 'A=""', "A=' '"])
    def test_a_line_without_a_value(self, line: str) -> None:
        assert parse_env(line) == {}

    def test_the_last_value_counts_but_a_blank_one_hides_nothing(self) -> None:
        assert parse_env("A=1\nA=2\nA=") == {"A": "2"}

    def test_only_line_ends_end_a_line(self) -> None:
        assert parse_env("A=1\r\nB=2\rC=3\x0c\u2028x\n") == {
            "A": "1",
            "B": "2",
            "C": "3\x0c\u2028x",
        }

    @pytest.mark.parametrize(
        "line", ["sk-secret", 'A="sk-secret', "A='sk-secret", 'A="x" sk-secret', "1A=sk-secret"]
    )
    def test_a_line_it_cannot_read_is_passed_over_and_logged_without_its_text(
        self, line: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert parse_env(f"B=1\n{line}\nC=2", source="x/.env") == {"B": "1", "C": "2"}
        assert caplog.messages == ["x/.env: line 2 is no NAME=value and was passed over"]

    def test_a_long_hostile_line_is_read_at_once(self) -> None:
        assert parse_env("A=" + "a " * 50_000 + '"') == {"A": "a " * 50_000 + '"'}
        assert parse_env('A="' + "\\" * 50_001) == {}


class TestKeys:
    def test_it_is_a_key_chain(self) -> None:
        assert isinstance(EnvironmentSecrets(), Secrets)
        assert isinstance(EnvironmentSecrets(), KeyChain)

    def test_a_key_comes_trimmed_from_the_environment(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ACME_KEY", "  secret\n")
        assert resolve(EnvironmentSecrets(), "ACME_KEY") == "secret"

    def test_the_environment_comes_before_the_file(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_env(home, "ACME_KEY=from-file")
        monkeypatch.setenv("ACME_KEY", "from-environment")
        assert resolve(EnvironmentSecrets(), "ACME_KEY") == "from-environment"

    def test_a_blank_variable_leaves_the_word_to_the_file(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_env(home, "ACME_KEY=from-file")
        monkeypatch.setenv("ACME_KEY", "   ")
        assert resolve(EnvironmentSecrets(), "ACME_KEY") == "from-file"

    def test_the_file_is_that_of_home_where_one_is_given(self, home: Path) -> None:
        write_env(home, "ACME_KEY=of-the-working-directory")
        (home / "elsewhere").mkdir()
        write_env(home / "elsewhere", "ACME_KEY=of-home")
        assert resolve(EnvironmentSecrets(home / "elsewhere"), "ACME_KEY") == "of-home"
        assert resolve(EnvironmentSecrets(str(home)), "ACME_KEY") == "of-the-working-directory"

    def test_a_later_change_of_directory_changes_no_keys(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_env(home, "ACME_KEY=first")
        secrets = EnvironmentSecrets()
        monkeypatch.chdir("/")
        assert resolve(secrets, "ACME_KEY") == "first"

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
    def test_a_byte_order_mark_belongs_to_no_name(self, home: Path, encoding: str) -> None:
        (home / ".env").write_bytes("ACME_KEY=secret\r\n".encode(encoding))
        assert resolve(EnvironmentSecrets(), "ACME_KEY") == "secret"

    def test_the_file_is_read_again_when_it_changes(self, home: Path) -> None:
        secrets = EnvironmentSecrets()
        assert keys(secrets, "ACME_KEY") == []
        write_env(home, "ACME_KEY=first")
        assert resolve(secrets, "ACME_KEY") == "first"
        write_env(home, "ACME_KEY=the second")
        assert resolve(secrets, "ACME_KEY") == "the second"
        (home / ".env").unlink()
        assert keys(secrets, "ACME_KEY") == []

    @pytest.mark.parametrize("text", ["", "ACME_KEY=", 'ACME_KEY="  "'])
    def test_a_missing_or_blank_key_is_no_key(self, home: Path, text: str) -> None:
        write_env(home, text)
        with pytest.raises(KeyError, match="ACME_KEY"):
            resolve(EnvironmentSecrets(), "ACME_KEY")
        assert keys(EnvironmentSecrets(), "ACME_KEY") == []

    def test_everybody_pays_with_the_installations_key(self, home: Path) -> None:
        write_env(home, "ACME_KEY=secret")
        expected = [ApiKey("ACME_KEY", "secret", KeySource.INSTALLATION)]
        assert keys(EnvironmentSecrets(), "ACME_KEY") == expected
        assert keys(EnvironmentSecrets(), "ACME_KEY", scope="anna") == expected

    def test_a_replaced_key_is_another_key(self, home: Path) -> None:
        secrets = EnvironmentSecrets()
        write_env(home, "ACME_KEY=refused")
        assert [key.id for key in keys(secrets, "ACME_KEY")] == ["ACME_KEY"]
        write_env(home, "ACME_KEY=replaced by this")
        assert [key.id for key in keys(secrets, "ACME_KEY")] == ["ACME_KEY@2"]
        assert [key.id for key in keys(secrets, "ACME_KEY")] == ["ACME_KEY@2"]

    @pytest.mark.parametrize("ref", ["anna/ACME_KEY", "", "A=B", "A B", "A\x00B"])
    def test_only_plain_names_are_looked_up(
        self, ref: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(os.environ, "anna/ACME_KEY", "of somebody else")
        with pytest.raises(KeyError):
            resolve(EnvironmentSecrets(), ref)
        assert keys(EnvironmentSecrets(), ref) == []

    def test_references_are_names_with_a_value(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ACME_KEY", "one")
        monkeypatch.setenv("ACME_BLANK", " ")
        monkeypatch.setitem(os.environ, "ACME_/X", "odd")
        write_env(home, "ACME_OTHER=two\nOTHER=three")
        refs = asyncio.run(EnvironmentSecrets().refs("ACME_"))
        assert refs == {"ACME_KEY", "ACME_OTHER"}

    def test_no_value_shows_in_its_repr(self, home: Path) -> None:
        write_env(home, "ACME_KEY=secret")
        secrets = EnvironmentSecrets()
        found = keys(secrets, "ACME_KEY")
        assert "secret" not in repr(secrets) + repr(found)

    def test_a_virtual_environment_called_dot_env_is_no_file_of_keys(self, home: Path) -> None:
        (home / ".env").mkdir()
        assert keys(EnvironmentSecrets(), "ACME_KEY") == []

    def test_a_file_that_is_no_text_is_reported(self, home: Path) -> None:
        (home / ".env").write_bytes(b"ACME_KEY=\xff\xfe\xfa")
        with pytest.raises(LLMBrokerError, match=r"\.env: is not UTF-8 text"):
            keys(EnvironmentSecrets(), "ACME_KEY")

    def test_an_unreadable_line_is_logged_once_per_version_of_the_file(
        self, home: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING)
        write_env(home, "what is this\nACME_KEY=secret")
        secrets = EnvironmentSecrets()
        for _ in range(3):
            assert resolve(secrets, "ACME_KEY") == "secret"
        assert len(caplog.messages) == 1


class TestAServerOfOnesOwn:
    def test_there_is_none_unless_its_address_is_set(self) -> None:
        assert environment_models() == []

    def test_a_local_server_needs_no_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LLMBROKER_BASE_URL", "http://localhost:11434/v1/")
        monkeypatch.setenv("LLMBROKER_MODEL", "llama3.2")
        (config,) = environment_models()
        assert (config.name, config.model) == ("llama3.2", "llama3.2")
        assert config.base_url == "http://localhost:11434/v1"
        assert config.api_key_ref == ""
        assert config.weight == 1.0

    def test_a_key_is_named_where_there_is_one(self, home: Path) -> None:
        write_env(
            home,
            "LLMBROKER_BASE_URL=https://llm.example/v1\n"
            "LLMBROKER_MODEL=house-model\n"
            "LLMBROKER_API_KEY=secret\n",
        )
        (config,) = environment_models(home)
        assert config.api_key_ref == "LLMBROKER_API_KEY"
        assert resolve(EnvironmentSecrets(home), config.api_key_ref) == "secret"

    def test_the_model_must_be_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LLMBROKER_BASE_URL", "http://localhost:11434/v1")
        with pytest.raises(LLMBrokerError, match="LLMBROKER_MODEL must name the model"):
            environment_models()

    @pytest.mark.parametrize("url", ["localhost:11434/v1", "ftp://h/v1", "http://u:sesame@h/v1"])
    def test_an_address_that_cannot_be_one_is_refused(
        self, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LLMBROKER_BASE_URL", url)
        monkeypatch.setenv("LLMBROKER_MODEL", "llama3.2")
        with pytest.raises(LLMBrokerError, match="LLMBROKER_BASE_URL must") as caught:
            environment_models()
        assert "sesame" not in str(caught.value)
