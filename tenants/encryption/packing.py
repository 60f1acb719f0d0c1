"""Unambiguous bytes: what is authenticated or hashed together is length-prefixed."""


def packed(*parts: bytes | str) -> bytes:
    """The parts, each after its length, so that no two lists of parts give the same bytes."""
    encoded = (part.encode() if isinstance(part, str) else part for part in parts)
    return b"".join(len(part).to_bytes(4, "big") + part for part in encoded)
