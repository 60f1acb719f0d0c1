"""A value that shows itself only when asked by name."""

from typing import Generic, NoReturn, TypeVar

V = TypeVar("V", str, bytes)


class Secret(Generic[V]):
    """Holds a secret text or bytes. ``reveal()`` gives it; print, format, pickle and JSON do not.

    It keeps the value out of logs and tracebacks; it cannot wipe it from memory.
    """

    __slots__ = ("_value",)
    _value: V

    def __init__(self, value: V) -> None:
        self._value = value

    def reveal(self) -> V:
        """The value. Use it inside one expression: a local variable shows up in tracebacks."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Secret does not travel: it cannot be pickled or copied")
