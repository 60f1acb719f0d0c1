"""`make demo` as a newcomer gets it, with servers of its own in an empty folder."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from broker_project.local.api import Api
from broker_project.local.ports import free_port
from broker_project.local.services import stop_services
from tests.support.model_server import ModelServer, fail

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "broker_project.local.demo"]
NO_WEATHER = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, str]]:
    # Not tmp_path: pytest closes its parent to other accounts, and as root PostgreSQL uses one.
    folder = Path(tempfile.mkdtemp(prefix="broker-demo-"))
    kept = ("PATH", "HOME", "LANG", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR")
    yield {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "BROKER_DATA_DIR": str(folder / "data"),
        "DEMO_PROVIDER": "practice",
        "WEATHER_API_URL": NO_WEATHER,
        "COLUMNS": "200",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BROKER_DATA_DIR", str(folder / "data"))
        assert stop_services() == [], "the demo left its servers running"
    shutil.rmtree(folder)


def play_once(settings: dict[str, str], **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        COMMAND,
        cwd=ROOT,
        env={**settings, "ONCE": "1", **more},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def in_order(text: str, *parts: str) -> bool:
    return re.search(".*".join(map(re.escape, parts)), text, re.DOTALL) is not None


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"REDIS_URL": "redis://127.0.0.1:9/0"}, "Nothing answers at REDIS_URL"),
        ({"DEMO_PORT": "abc"}, "DEMO_PORT=abc is no port; it is a number, such as 8000."),
    ],
)
def test_what_is_set_wrong_is_named_and_nothing_is_waited_for(
    settings: dict[str, str], wrong: dict[str, str], says: str
) -> None:
    result = play_once(settings, **wrong)

    assert result.returncode == 1
    assert says in result.stdout + result.stderr
    assert "Traceback" not in result.stderr


def test_the_agent_calls_its_tools_and_answers_though_the_weather_is_out_of_reach(
    settings: dict[str, str],
) -> None:
    result = play_once(settings)

    assert result.returncode == 0, result.stdout + result.stderr
    assert in_order(
        result.stdout,
        "Model: Practice model",
        "asks for today",
        "today(timezone='Asia/Tashkent')",
        "asks for weather",
        "weather(city='Toshkent') → Tool weather failed",
        "asks for calculate",
        "calculate(expression='30 * 1.8 + 32') → 86",
        "Run completed",
        "Practice model: Sana: ",
        "vosita xato berdi",
        "Journal",
    )
    assert result.stdout.count("│ ok") == 4


def test_it_plays_again_on_the_data_of_the_last_time(settings: dict[str, str]) -> None:
    result = play_once(settings, DEMO_TASK="What is 6 * 7?")

    assert result.returncode == 0, result.stdout + result.stderr
    assert "Tenant demo," in result.stdout
    assert "6 * 7 = 42" in result.stdout


def test_a_model_that_refuses_is_no_success(settings: dict[str, str]) -> None:
    with ModelServer() as server:
        server.answer_with(lambda _request: fail(400, "no such tool format"))
        named = {"DEMO_PROVIDER": "", "DEMO_BASE_URL": server.base_url, "DEMO_MODEL": "m"}
        result = play_once(settings, **named)

    assert result.returncode == 1
    assert "Run failed" in result.stdout


def test_an_option_that_makes_no_sense_is_explained(settings: dict[str, str]) -> None:
    result = play_once(settings, DEMO_PROVIDER="pigeon")

    assert result.returncode == 1
    assert "DEMO_PROVIDER=pigeon is not known" in result.stdout


@contextmanager
def running(command: list[str], settings: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """The process, ended with the block whatever happens in it."""
    with subprocess.Popen(
        command, cwd=ROOT, env=settings, text=True, stdout=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=30)


def test_it_stays_up_for_a_look_around_until_ctrl_c(settings: dict[str, str]) -> None:
    with running(COMMAND, settings) as process:
        assert process.stdout
        seen = ""
        for line in process.stdout:
            seen += line
            if "Ctrl-C stops everything" in line:
                break
        admin = re.search(r"Admin +(\S+)", seen)
        assert admin, seen
        with urlopen(admin[1], timeout=10) as response:  # noqa: S310
            assert "Log in" in response.read().decode()
        second = play_once(settings)
        assert second.returncode == 1
        assert "A demo is running here already. End it" in second.stdout
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0

    with pytest.raises(OSError, match="refused"):
        urlopen(admin[1], timeout=10)  # noqa: S310


def test_the_development_server_comes_up_and_ends_with_ctrl_c(settings: dict[str, str]) -> None:
    port = free_port()
    server = Api(f"http://127.0.0.1:{port}")
    command = [sys.executable, "-m", "broker_project.local.dev"]
    with running(command, {**settings, "DEV_PORT": str(port)}) as process:
        deadline = time.monotonic() + 60
        while not server.answers():
            assert process.poll() is None
            assert time.monotonic() < deadline, "the web server does not come up"
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0

    assert not server.answers()
