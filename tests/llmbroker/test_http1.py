"""The HTTP client, against a server that says exactly the bytes that a test writes down."""

from __future__ import annotations

import asyncio
import datetime as dt
import gzip
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from llmbroker.addresses import AddressPolicy, GuardedResolver
from llmbroker.http1 import connecting
from llmbroker.http1.pool import Pool
from llmbroker.http1.response import MAX_ANSWER_BYTES, Response
from llmbroker.wire.failure import ExchangeError, FailureKind
from llmbroker.wire.request import Request
from tests.support.names import Names

HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
CLOSE = None
"""In a script: the server closes the connection."""


class Server:
    """Answers the requests of all connections with one script after another."""

    def __init__(self, *scripts: list[bytes | None]) -> None:
        self.scripts = list(scripts)
        self.requests: list[bytes] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.scripts:
                head = await reader.readuntil(b"\r\n\r\n")
                self.requests.append(head + await reader.readexactly(2))
                for piece in self.scripts.pop(0):
                    if piece is CLOSE:
                        return
                    writer.write(piece)
                    await writer.drain()
            await reader.read()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


Talk = Callable[..., Awaitable[tuple[int, bytes]]]


@asynccontextmanager
async def talking(
    server: Server, *names: list[str], host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[Talk]:
    """A function that posts to ``server`` and gives status and body."""
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    port = listening.sockets[0].getsockname()[1]
    pool = Pool(Names(*names))
    scheme = "https" if tls else "http"

    async def talk(total: float = 5.0, body: bytes = b"{}") -> tuple[int, bytes]:
        request = Request(f"{scheme}://{host}:{port}/v1/чат", {"Authorization": "Bearer k"}, body)
        response = await pool.send(request, total=total, connect=5.0)
        return response.status, await response.body()

    try:
        yield talk
    finally:
        await pool.close()
        listening.close()


def outcome(server: Server, times: int = 1, **options: float) -> list[bytes | FailureKind]:
    """What ``times`` requests, one after another, come to."""

    async def program() -> list[bytes | FailureKind]:
        found: list[bytes | FailureKind] = []
        async with talking(server) as talk:
            for _ in range(times):
                try:
                    found.append((await talk(**options))[1])
                except ExchangeError as error:
                    found.append(error.failure.kind)
        return found

    return asyncio.run(program())


def packed(encoding: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


WHOLE = {
    "a length": [HELLO],
    "chunks": [CHUNKED + b"\r\n2\r\nhe\r\n", b"3;x=y\r\nllo\r\n0\r\nTrailer: 1\r\n\r\n"],
    "the end of the connection": [b"HTTP/1.1 200 OK\r\n\r\nhel", b"lo", CLOSE],
    "an interim answer first": [b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", HELLO],
    "gzip": [packed("gzip", gzip.compress(b"hello"))],
    "deflate": [packed("deflate", zlib.compress(b"hello"))],
    "raw deflate": [packed("Deflate", raw_deflate(b"hello"))],
    "bare line feeds": [b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"],
    "the old protocol": [b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"],
}


@pytest.mark.parametrize("script", WHOLE.values(), ids=WHOLE)
def test_an_answer_is_read_whole_however_it_is_framed(script: list[bytes | None]) -> None:
    assert outcome(Server(script)) == [b"hello"]


BROKEN = {
    "cut inside a length": ([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", CLOSE]),
    "cut inside a chunk": ([CHUNKED + b"\r\n9\r\nhello", CLOSE]),
    "cut inside the head": ([b"HTTP/1.1 200 O", CLOSE]),
    "no HTTP": ([b"SSH-2.0-OpenSSH\r\n"]),
    "a chunk of no size": ([CHUNKED + b"\r\nzz\r\nhello\r\n"]),
    "a packing that nobody asked for": ([packed("br", b"hello")]),
    "no gzip at all": ([packed("gzip", b"hello")]),
}


@pytest.mark.parametrize("script", BROKEN.values(), ids=BROKEN)
def test_an_answer_that_breaks_off_or_is_none_is_a_failure(script: list[bytes | None]) -> None:
    assert outcome(Server(script)) == [FailureKind.DISCONNECTED]


def test_what_is_too_large_is_refused_before_it_is_unpacked() -> None:
    bomb = gzip.compress(b"\0" * (MAX_ANSWER_BYTES + 1))
    endless_head = b"HTTP/1.1 200 OK\r\n" + b"X-Padding: 0123456789\r\n" * 10_000
    for script in (packed("gzip", bomb), endless_head):
        assert outcome(Server([script])) == [FailureKind.INVALID_RESPONSE]


def test_an_answer_that_is_late_is_a_timeout_also_inside_its_body() -> None:
    for script in ([], [HELLO[:-1]]):
        assert outcome(Server(script), total=0.2) == [FailureKind.TIMEOUT]


def test_a_request_says_where_it_goes_and_its_address_is_encoded() -> None:
    server = Server([HELLO])
    outcome(server)
    head = server.requests[0].decode()
    assert head.startswith("POST /v1/%D1%87%D0%B0%D1%82 HTTP/1.1\r\nHost: 127.0.0.1:")
    assert "Authorization: Bearer k\r\n" in head
    assert "Content-Length: 2\r\n" in head


def test_a_connection_is_kept_for_the_next_request() -> None:
    server = Server([HELLO], [HELLO], [HELLO])
    assert outcome(server, 3) == [b"hello"] * 3
    assert server.connections == 1


@pytest.mark.parametrize(
    "first", [HELLO.replace(b"\r\n", b"\r\nConnection: close\r\n", 1), HELLO + HELLO]
)
def test_a_connection_is_not_kept_that_its_server_closes_or_says_too_much_on(first: bytes) -> None:
    server = Server([first], [HELLO])
    assert outcome(server, 2) == [b"hello"] * 2
    assert server.connections == 2


def test_a_kept_connection_that_dies_before_the_first_byte_is_replaced_once() -> None:
    server = Server([HELLO], [CLOSE], [HELLO])
    assert outcome(server, 2) == [b"hello"] * 2
    assert len(server.requests) == 3


def test_nothing_is_sent_again_once_a_byte_has_come_or_on_a_fresh_connection() -> None:
    begun = Server([HELLO], [b"H", CLOSE], [HELLO])
    assert outcome(begun, 2) == [b"hello", FailureKind.DISCONNECTED]
    assert outcome(Server([CLOSE], [HELLO])) == [FailureKind.DISCONNECTED]


def test_a_name_is_looked_up_once_for_all_who_ask_at_the_same_time() -> None:
    server = Server(*[[HELLO]] * 20)

    async def program() -> list[tuple[int, bytes]]:
        async with talking(server, ["127.0.0.1"], host="model.test") as talk:
            first = asyncio.ensure_future(talk())
            others = [asyncio.ensure_future(talk()) for _ in range(10)]
            await asyncio.sleep(0)
            first.cancel()  # whoever asked first gives up; the others are not to notice
            return await asyncio.gather(*others)

    assert asyncio.run(program()) == [(200, b"hello")] * 10


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's TLS as model.test, which this process trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("model.test")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "certificate.pem"
    file.write_bytes(
        signed.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    connecting._tls.cache_clear()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


@pytest.mark.parametrize(
    ("host", "expected"), [("model.test", (200, b"hello")), ("other.test", FailureKind.CONNECT)]
)
def test_a_certificate_is_held_to_the_name_and_not_to_the_address(
    certificate: ssl.SSLContext, host: str, expected: object
) -> None:
    async def program() -> object:
        async with talking(Server([HELLO]), ["127.0.0.1"], host=host, tls=certificate) as talk:
            try:
                return await talk()
            except ExchangeError as error:
                return error.failure.kind

    try:
        assert asyncio.run(program()) == expected
    finally:
        connecting._tls.cache_clear()


class Wire:
    """Takes note of how an answer leaves its connection."""

    kept: bool | None = None

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def settle(self, *, keep: bool) -> None:
        self.kept = keep


ANSWER = (
    CHUNKED
    + b"X-Name: \xc3\xa9\r\nContent-Encoding: gzip\r\n\r\n"
    + b"".join(
        b"%x\r\n%b\r\n" % (len(each), each)
        for each in (gzip.compress(b"one piece ")[:9], gzip.compress(b"one piece ")[9:])
    )
    + b"0\r\n\r\n"
)


@given(st.lists(st.integers(1, len(ANSWER) - 1), unique=True).map(sorted))
def test_any_split_of_the_bytes_gives_the_same_answer(cuts: list[int]) -> None:
    async def program() -> tuple[int, bytes, bool | None]:
        loop, wire = asyncio.get_running_loop(), Wire()
        response = Response(wire, loop, loop.time() + 5)
        body = asyncio.ensure_future(response.body())
        for start, end in zip([0, *cuts], [*cuts, len(ANSWER)], strict=True):
            response.feed(ANSWER[start:end])
            await asyncio.sleep(0)  # what has arrived is read at once
        return response.status, await body, wire.kept

    assert asyncio.run(program()) == (200, b"one piece ", True)


def test_a_name_that_leads_into_the_private_network_is_refused_before_anything_is_sent() -> None:
    async def program() -> tuple[FailureKind, str, int]:
        server = Server([HELLO])
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        pool = Pool(GuardedResolver(AddressPolicy(), Names(["203.0.113.7", "127.0.0.1"])))
        request = Request(
            f"http://models.example.test:{port}/v1", {"Authorization": "Bearer k"}, b"{}"
        )
        try:
            with pytest.raises(ExchangeError) as refused:
                await pool.send(request, total=5.0, connect=5.0)
        finally:
            await pool.close()
            listening.close()
        failure = refused.value.failure
        return failure.kind, failure.detail or "", server.connections

    kind, detail, connections = asyncio.run(program())
    assert (kind, connections) == (FailureKind.CONNECT, 0)
    assert "not in the public network" in detail
