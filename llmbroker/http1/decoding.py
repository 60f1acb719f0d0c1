"""Packed bodies, unpacked as they arrive and never beyond what is allowed."""

from __future__ import annotations

import zlib
from typing import Protocol

_GZIP, _ZLIB, _RAW = zlib.MAX_WBITS | 16, zlib.MAX_WBITS, -zlib.MAX_WBITS


class Decoder(Protocol):
    """Takes a body as it comes."""

    def feed(self, data: bytes, limit: int) -> bytes:
        """``data`` unpacked; more than ``limit`` bytes if there would be more. ValueError for
        what cannot be unpacked."""
        ...


class Plain:
    """A body that is not packed."""

    def feed(self, data: bytes, limit: int) -> bytes:  # noqa: ARG002 - see Decoder
        """See Decoder."""
        return data


class Packed:
    """gzip or deflate; some servers mean raw deflate by the latter."""

    def __init__(self, encoding: str) -> None:
        self._is_deflate = encoding == "deflate"
        self._inner = None if self._is_deflate else zlib.decompressobj(_GZIP)

    def feed(self, data: bytes, limit: int) -> bytes:
        """See Decoder."""
        if self._inner is None:
            is_zlib = data[0] & 0x0F == 8  # zlib's own header; raw deflate never begins so
            self._inner = zlib.decompressobj(_ZLIB if is_zlib else _RAW)
        try:
            return self._inner.decompress(data, limit + 1)
        except zlib.error as error:
            raise ValueError("the body cannot be unpacked") from error


def decoder_of(encoding: str) -> Decoder:
    """The decoder for a Content-Encoding. Raises ValueError for one that was not asked for."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return Plain()
    if encoding in ("gzip", "x-gzip", "deflate"):
        return Packed(encoding)
    raise ValueError("the body is packed in a way that was not asked for")
