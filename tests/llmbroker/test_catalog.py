"""The model lists that come with the engine, and the reader of a user's own."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from llmbroker import catalog
from llmbroker.errors import LLMBrokerError, UnknownModelError
from llmbroker.models import LLMConfig

LISTS = [catalog.pool_list(), catalog.paid_list()]
ENTRIES = [entry for models in LISTS for entry in models.entries]
PROMISED_ALIASES = (
    "opus", "sonnet", "haiku", "gpt", "gpt-mini", "gpt-fast", "flash", "grok", "deepseek",
    "deepseek-flash", "mistral",
)  # fmt: skip
SECRET = "sk-proj-0123456789abcdef"

STAND_ALONE = """
[[llms]]
name        = "local"
base_url    = "http://localhost:11434/v1/"
model       = "llama3.2"
api_key_ref = ""
"""
WITH_PROVIDER = """
[providers.acme]
label       = "Acme"
base_url    = "https://api.acme.test/v1"
api_key_ref = "ACME_API_KEY"
key_help    = "Ask Acme."

[[llms]]
provider       = "acme"
model          = "acme-1"
alias          = "best"
parallel       = 4
weight         = 1
context_window = 8_000
tool_params    = { effort = "low" }
sources        = ["acme-docs"]
verified       = 2026-11-30

[[llms]]
provider    = "acme"
name        = "acme-eu"
model       = "acme-1"
base_url    = "https://eu.acme.test/v1"
api_key_ref = "ACME_EU_API_KEY"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "models.toml"
    path.write_text(text, encoding="utf-8")
    return path


class TestTheLineup:
    def test_the_pool_has_models_of_several_providers(self) -> None:
        assert len(catalog.pool()) >= 5
        assert len({urlsplit(config.base_url).hostname for config in catalog.pool()}) >= 3

    def test_a_pool_model_says_how_good_it_is_expected_to_be(self) -> None:
        assert all(0 < config.weight <= 1 for config in catalog.pool())

    def test_every_promised_alias_is_there(self) -> None:
        assert set(PROMISED_ALIASES) <= set(catalog.aliases())

    def test_an_alias_gives_its_model(self) -> None:
        opus = catalog.alias("opus")
        assert opus.alias == "opus"
        assert opus.model.startswith("claude-opus-")
        assert opus.base_url == "https://api.anthropic.com/v1"

    def test_an_unknown_alias_is_answered_with_those_there_are(self) -> None:
        with pytest.raises(UnknownModelError, match=r"'opsu'.*opus.*deepseek-flash"):
            catalog.alias("opsu")

    def test_models_of_openai_take_tools_only_without_reasoning(self) -> None:
        for name in ("gpt", "gpt-mini", "gpt-fast"):
            assert catalog.alias(name).tool_params == {"reasoning_effort": "none"}

    @pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.config.name)
    def test_an_entry_is_whole(self, entry: catalog.Entry) -> None:
        config = entry.config
        assert config.base_url.startswith("https://")
        assert config.context_window is not None
        assert config.context_window >= 32_000
        assert catalog.key_help(config.api_key_ref)
        assert entry.label
        assert entry.verified is not None
        assert entry.sources

    def test_no_entry_rests_on_a_single_source(self) -> None:
        assert [entry.config.name for entry in ENTRIES if not entry.confirmed] == []

    def test_names_are_unique_over_both_lists(self) -> None:
        names = [entry.config.name for entry in ENTRIES]
        assert len(names) == len(set(names))

    def test_every_provider_is_listed_once_and_says_where_to_get_a_key(self) -> None:
        listed = catalog.providers()
        assert len({provider.id for provider in listed}) == len(listed)
        assert all("https://" in provider.key_help for provider in listed)

    def test_help_on_an_unknown_key_is_none(self) -> None:
        assert catalog.key_help("NOBODYS_API_KEY") is None

    def test_what_a_caller_does_to_a_list_stays_his_own(self) -> None:
        catalog.pool().clear()
        catalog.aliases().clear()
        assert catalog.pool()
        assert catalog.aliases()


class TestAListOfOnesOwn:
    def test_a_row_may_stand_alone(self, tmp_path: Path) -> None:
        assert catalog.load_models(write(tmp_path, STAND_ALONE)) == [
            LLMConfig("local", "http://localhost:11434/v1", "llama3.2", api_key_ref="")
        ]

    def test_a_row_takes_from_its_provider_what_it_does_not_say_itself(
        self, tmp_path: Path
    ) -> None:
        first, second = catalog.load_models(str(write(tmp_path, WITH_PROVIDER)))
        assert first == LLMConfig(
            "acme-1",
            "https://api.acme.test/v1",
            "acme-1",
            "ACME_API_KEY",
            parallel=4,
            weight=1.0,
            alias="best",
            tool_params={"effort": "low"},
            context_window=8_000,
        )
        assert (second.base_url, second.api_key_ref) == (
            "https://eu.acme.test/v1",
            "ACME_EU_API_KEY",
        )

    def test_a_row_keeps_where_its_id_was_seen(self, tmp_path: Path) -> None:
        entry = catalog.load_model_list(write(tmp_path, WITH_PROVIDER)).entries[0]
        assert (entry.sources, entry.verified) == (("acme-docs",), date(2026, 11, 30))
        assert not entry.confirmed

    def test_help_on_a_key_comes_from_the_provider_or_from_a_table_of_keys(
        self, tmp_path: Path
    ) -> None:
        text = WITH_PROVIDER + '[keys.OTHER_KEY]\nhelp = "Ask."\neffort = "signup"\n'
        models = catalog.load_model_list(write(tmp_path, text))
        assert models.key_help == {"ACME_API_KEY": "Ask Acme.", "OTHER_KEY": "Ask."}

    def test_a_list_without_rows_is_empty(self, tmp_path: Path) -> None:
        assert catalog.load_models(write(tmp_path, "")) == []

    def test_a_key_reference_must_be_given_though_it_may_be_empty(self, tmp_path: Path) -> None:
        text = STAND_ALONE.replace('api_key_ref = ""', "")
        with pytest.raises(LLMBrokerError, match=r'api_key_ref is missing.*""'):
            catalog.load_models(write(tmp_path, text))

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ('"llama3.2"', "3.2", r"\[\[llms\]\] 1: model must be a string"),
            ('"llama3.2"', '" "', r"\[\[llms\]\] 1: model is missing"),
            (
                '"http://localhost:11434/v1/"',
                '"localhost:11434"',
                r"1 \(local\): base_url must start",
            ),
            ('"http://localhost:11434/v1/"', '"http://h:x/v1"', "base_url is no address"),
            ('"http://localhost:11434/v1/"', '"http://a:b@h/v1"', "base_url must not hold a user"),
            ('"http://localhost:11434/v1/"', '"http://h/v1?key=1"', "must not have a query"),
            ("model  ", "modell", "model is missing"),
            ('ref = ""', 'ref = ""\nparalel = 2', r"unknown field paralel \(known: .*parallel"),
            ('ref = ""', 'ref = ""\nparallel = true', "parallel must be a whole number"),
            ('ref = ""', 'ref = ""\nparallel = 0', "parallel is at least 1"),
            ('ref = ""', 'ref = ""\nweight = 1.5', "weight lies within"),
            ('ref = ""', 'ref = ""\nweight = nan', "weight lies within"),
            ('ref = ""', 'ref = ""\nweight = "high"', "weight must be a number"),
            ('ref = ""', 'ref = ""\ncontext_window = 0', "context_window is at least 1"),
            ('ref = ""', 'ref = ""\nsources = [1]', "sources must be a list of strings"),
            ('ref = ""', 'ref = ""\nverified = "today"', "verified must be a date"),
            ('ref = ""', 'ref = ""\ntool_params = { model = "x" }', "'model' is set by llmbroker"),
            ('ref = ""', 'ref = ""\nprovider = "acme"', r"there is no \[providers.acme\]"),
            ("[[llms]]", "[llms]", "llms must be a list"),
            ("[[llms]]", "[[llm]]", "unknown field llm"),
            ("[[llms]]", "llms = [1]\n[x]", r"\[\[llms\]\] 1 must be a table"),
            ("[[llms]]", "keys = 1\n[[llms]]", "keys must be a table"),
            ("[[llms]]", "[providers.x]\n[[llms]]", r"\[providers.x\]: base_url is missing"),
            ("[[llms]]", "[[llms]", "is not valid TOML"),
            ("[[llms]]", STAND_ALONE + "[[llms]]", "name local is used by more than one row"),
        ],
    )
    def test_a_fault_is_named_with_its_place(
        self, tmp_path: Path, old: str, new: str, message: str
    ) -> None:
        assert old in STAND_ALONE
        path = write(tmp_path, STAND_ALONE.replace(old, new))
        with pytest.raises(LLMBrokerError, match=message) as caught:
            catalog.load_models(path)
        assert str(path) in str(caught.value)

    def test_two_rows_cannot_share_an_alias(self, tmp_path: Path) -> None:
        row = STAND_ALONE + 'alias = "best"\n'
        text = row + row.replace('"local"', '"other"')
        with pytest.raises(LLMBrokerError, match="alias best is used by more than one row"):
            catalog.load_models(write(tmp_path, text))

    @pytest.mark.parametrize(
        "line",
        [
            f'api_key_ref = "{SECRET}"',
            f'api_key_ref = ""\napi_key = "{SECRET}"',
            f'api_key_ref = ["{SECRET}"]',
            f'api_key_ref = ""\nalias = ["{SECRET}"]',
            f'api_key_ref = "{SECRET}',
        ],
    )
    def test_a_key_pasted_into_the_list_is_refused_and_never_repeated(
        self, tmp_path: Path, line: str
    ) -> None:
        path = write(tmp_path, STAND_ALONE.replace('api_key_ref = ""', line))
        with pytest.raises(LLMBrokerError) as caught:
            catalog.load_models(path)
        assert SECRET not in str(caught.value)

    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(LLMBrokerError, match=r"models\.toml: there is no such file"):
            catalog.load_models(tmp_path / "models.toml")

    def test_a_folder_is_no_list(self, tmp_path: Path) -> None:
        with pytest.raises(LLMBrokerError, match="cannot be read"):
            catalog.load_models(tmp_path)

    def test_a_file_in_another_encoding_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "models.toml"
        path.write_bytes(b'name = "\xff"')
        with pytest.raises(LLMBrokerError, match="is not UTF-8 text"):
            catalog.load_models(path)
