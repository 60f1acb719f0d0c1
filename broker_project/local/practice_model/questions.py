"""What a question wants: the date, the weather somewhere, the value of an expression."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from broker_project.local.practice_model.cities import cities_in


class Kind(Enum):
    """The kinds of question that the practice model recognises."""

    DATE = "date"
    WEATHER = "weather"
    ARITHMETIC = "arithmetic"


@dataclass(frozen=True)
class Want:
    """One thing wanted; the subject is the city or the expression, empty where there is none."""

    kind: Kind
    subject: str = ""


WEATHER = re.compile(
    r"weather|forecast|temperature|\b(?:how|is it) (?:warm|cold)\b|"
    r"\bob-?\s?havo|\bhavo\b|harorat|погод|температур",
    re.IGNORECASE,
)
DATE = re.compile(
    r"\bdate\b|\b(?:what|which) day\b|day is it|\bqaysi kun|\bsana(?:si|sini|ni)?\b|nechanchi|"
    r"\bдат[ауы]\b|како[ей]\s(?:сегодня\s)?(?:число|день)|день недели",
    re.IGNORECASE,
)
TODAY = re.compile(r"\btoday\b|\bbugun|\bсегодня", re.IGNORECASE)
SENTENCE = re.compile(r"[^.?!;\n]+(?:\.\d[^.?!;\n]*)*")

NUMBER = r"\d+(?:[.,]\d+)?"
OPERATOR = r"(?:\*\*|//|[-+*/×÷·^%−])"
OPERAND = rf"[( ]*-?{NUMBER}[) ]*"
EXPRESSION = re.compile(rf"{OPERAND}(?:{OPERATOR}{OPERAND})+")
CALENDAR_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}/\d{1,2}/\d{2,4}\b")
# "5-7 days" and "24/7" are no sums unless one asks for a sum.
RANGE = re.compile(r"\d+[-/]\d+")
ASKS_FOR_A_SUM = re.compile(
    r"calc|comput|how much|what is|what's|hisobla|necha|qancha|посчита|вычисл|сколько",
    re.IGNORECASE,
)
SPELLING = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", ",": ".", "^": "**"})


def wants_of(question: str) -> list[Want]:
    """What the question wants, in its order, each once."""
    placed = [*_dates(question), *_weather(question), *_sums(question)]
    return list(dict.fromkeys(want for _, want in sorted(placed, key=lambda pair: pair[0])))


def _dates(question: str) -> Iterator[tuple[int, Want]]:
    for sentence in SENTENCE.finditer(question):
        # In "the weather today" the word only says which weather.
        about_weather = WEATHER.search(sentence.group())
        match = DATE.search(sentence.group()) or (
            None if about_weather else TODAY.search(sentence.group())
        )
        if match:
            yield sentence.start() + match.start(), Want(Kind.DATE)
            return


def _weather(question: str) -> Iterator[tuple[int, Want]]:
    match = WEATHER.search(question)
    if match is None:
        return
    cities = cities_in(question)
    for city in cities:
        yield city.position, Want(Kind.WEATHER, city.name)
    if not cities:
        yield match.start(), Want(Kind.WEATHER)


def _sums(question: str) -> Iterator[tuple[int, Want]]:
    without_dates = CALENDAR_DATE.sub(lambda match: "x" * len(match.group()), question)
    for match in EXPRESSION.finditer(without_dates):
        written = match.group().strip()
        if RANGE.fullmatch(written) and not ASKS_FOR_A_SUM.search(question):
            continue
        expression = _balanced(" ".join(written.translate(SPELLING).split()))
        yield match.start(), Want(Kind.ARITHMETIC, expression)


def _balanced(expression: str) -> str:
    """Without the parentheses that belong to the sentence around it."""
    while expression.count("(") > expression.count(")") and expression.startswith("("):
        expression = expression[1:].lstrip()
    while expression.count(")") > expression.count("(") and expression.endswith(")"):
        expression = expression[:-1].rstrip()
    return expression
