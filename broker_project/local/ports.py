"""Ports of the loopback address, where everything of a trial listens."""

import socket

HOST = "127.0.0.1"


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
