"""The practice model in the foreground: `python -m broker_project.local.practice_model`."""

import argparse
import signal
import sys
from types import FrameType

from broker_project.local.practice_model import NAME
from broker_project.local.practice_model.server import Server


def main() -> None:
    """Serve until interrupted; the first line printed names the base URL."""
    parser = argparse.ArgumentParser(description=f"{NAME}: an OpenAI-compatible stand-in")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    with Server(parser.parse_args().port) as server:
        signal.signal(signal.SIGTERM, _interrupt)
        sys.stdout.write(f"{NAME} on {server.base_url}\n")
        sys.stdout.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
