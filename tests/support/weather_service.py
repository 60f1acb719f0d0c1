"""A weather service on loopback that answers as wttr.in does with `?format=j1`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit


class WeatherService:
    """What it answers, and which places it was asked about."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.places: list[str] = []
        self.status = 200
        self.body = json.dumps(report()).encode()


def report(city: str = "Tashkent", temperature: int = 31) -> dict[str, object]:
    """A report in wttr.in's shape."""
    return {
        "current_condition": [
            {
                "temp_C": str(temperature),
                "FeelsLikeC": str(temperature + 1),
                "humidity": "18",
                "windspeedKmph": "9",
                "weatherDesc": [{"value": "Sunny"}],
            }
        ],
        "nearest_area": [{"areaName": [{"value": city}], "country": [{"value": "Uzbekistan"}]}],
    }


@contextmanager
def weather_service() -> Iterator[WeatherService]:
    """Run one on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            service.places.append(unquote(urlsplit(self.path).path.lstrip("/")))
            self.send_response(service.status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(service.body)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service = WeatherService(f"http://127.0.0.1:{http.server_address[1]}")
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        http.shutdown()
        http.server_close()
        thread.join(5)
