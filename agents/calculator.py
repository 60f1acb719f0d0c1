"""Arithmetic from text: numbers and nothing else, bounded in length and size."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable

from simpleeval import InvalidExpression, SimpleEval

MAX_LENGTH = 300
MAX_BITS = 8_192
"""Larger integers are refused before they are computed: 9**9**9 would take all memory."""

MAX_DIGITS = 100
"""Rounding to more places than this takes time without bound, as round(1, -10**9) does."""

ALLOWED = "numbers, + - * / // % **, brackets, abs, max, min, round, sqrt, pi and e"

Number = int | float


def evaluate(expression: str) -> str:
    """The value of an arithmetic expression, as short text.

    >>> evaluate("30 * 1.8 + 32"), evaluate("0.1 + 0.2"), evaluate("2 ** 10")
    ('86', '0.3', '1024')

    Raises ValueError, with the reason in words, for whatever is no arithmetic or too large.
    """
    if len(expression) > MAX_LENGTH:
        raise ValueError(f"the expression is longer than {MAX_LENGTH} characters")
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
        return _text(_number(_evaluator().eval(expression, tree)))
    except SyntaxError as error:
        raise ValueError(f"{expression!r} is no arithmetic expression") from error
    except ZeroDivisionError as error:
        raise ValueError("division by zero") from error
    except (OverflowError, RecursionError, MemoryError) as error:
        raise ValueError("the result or the expression is too large") from error
    except InvalidExpression as error:
        raise ValueError(f"only {ALLOWED} can be used") from error
    except TypeError as error:
        raise ValueError(f"cannot calculate this: {error}") from error


def _evaluator() -> SimpleEval:
    evaluator = SimpleEval(
        operators=_OPERATORS, functions=_FUNCTIONS, names={"pi": math.pi, "e": math.e}
    )
    evaluator.nodes = {kind: evaluator.nodes[kind] for kind in _NODES}
    return evaluator


def _number(value: object) -> Number:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("only real numbers can be calculated with")  # noqa: TRY004 - told to the model
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise OverflowError
    return value


def _text(value: Number) -> str:
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        raise ValueError("the result is no finite number")
    return format(value, ".15g")


def _checked(function: Callable[..., object]) -> Callable[..., Number]:
    """``function`` from numbers to a number: no text, no list, no growing without bound."""

    def call(*operands: object) -> Number:
        return _number(function(*(_number(operand) for operand in operands)))

    return call


def _power(base: Number, exponent: Number) -> object:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and int(base).bit_length() * exponent > 2 * MAX_BITS:
        raise OverflowError
    return base**exponent


def _rounded(value: Number, digits: int = 0) -> Number:
    if abs(digits) > MAX_DIGITS:
        raise OverflowError
    return round(value, digits) if digits else round(value)


# Arithmetic alone: attributes, subscripts, comparisons and f-strings are never evaluated.
_NODES = (ast.Constant, ast.Name, ast.UnaryOp, ast.BinOp, ast.Call)

_OPERATORS = {
    ast.Add: _checked(operator.add),
    ast.Sub: _checked(operator.sub),
    ast.Mult: _checked(operator.mul),
    ast.Div: _checked(operator.truediv),
    ast.FloorDiv: _checked(operator.floordiv),
    ast.Mod: _checked(operator.mod),
    ast.Pow: _checked(_power),
    ast.USub: _checked(operator.neg),
    ast.UAdd: _checked(operator.pos),
}

_FUNCTIONS = {
    "abs": _checked(abs),
    "max": _checked(max),
    "min": _checked(min),
    "round": _checked(_rounded),
    "sqrt": _checked(math.sqrt),
}
