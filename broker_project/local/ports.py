"""Ports of the loopback address, where everything of a trial listens."""

import os
import socket

HOST = "127.0.0.1"
USUAL = "8000"


class PortError(ValueError):
    """What a setting says is no port; the message names both."""


def port_by(setting: str) -> int:
    """The port that the environment variable ``setting`` names, else 8000; else any."""
    text = os.environ.get(setting) or USUAL
    if not (text.isdecimal() and int(text) < 2**16):
        raise PortError(f"{setting}={text} is no port; it is a number, such as {USUAL}.")
    return free_port(int(text))


def free_port(preferred: int = 0) -> int:
    """The preferred port if it is free, else any free one."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            free: int = probe.getsockname()[1]
            return free
    raise OSError(f"there is no free port on {HOST}")
