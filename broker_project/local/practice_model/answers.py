"""The answer in words, from what the tools said: plain when they failed."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from broker_project.local.practice_model import NAME
from broker_project.local.practice_model.questions import Kind, Want

LONGEST_RESULT = 400
FAILURE = re.compile(r"^(?:Tool \S+ failed\b|Unknown tool\b|Error\b)", re.IGNORECASE)
UZBEK = re.compile(
    r"\b(?:bugun|qaysi|qanday|qancha|necha|hisobla|ob-?havo|nima|iltimos|salom)|[og][‘’ʻʼ']\w|[ўқғҳ]",
    re.IGNORECASE,
)
CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)


class Outcome(Enum):
    """How a want came out."""

    KNOWN = auto()
    FAILED = auto()
    NO_TOOL = auto()
    NO_CITY = auto()


@dataclass(frozen=True)
class Finding:
    """A want and what came of it."""

    want: Want
    outcome: Outcome
    result: str = ""


WHAT = {
    "en": {Kind.DATE: "Date", Kind.WEATHER: "Weather in {}", Kind.ARITHMETIC: "{}"},
    "uz": {Kind.DATE: "Sana", Kind.WEATHER: "{} shahrida ob-havo", Kind.ARITHMETIC: "{}"},
    "ru": {Kind.DATE: "Дата", Kind.WEATHER: "Погода, {}", Kind.ARITHMETIC: "{}"},
}
SENTENCES = {
    "en": {
        Outcome.FAILED: "{what}: I could not find out, because the tool failed ({result}).",
        Outcome.NO_TOOL: "{what}: I have no tool for this.",
        Outcome.NO_CITY: "Weather: please name a city.",
    },
    "uz": {
        Outcome.FAILED: "{what}: bilib bo‘lmadi, vosita xato berdi ({result}).",
        Outcome.NO_TOOL: "{what}: buning uchun menda vosita yo‘q.",
        Outcome.NO_CITY: "Ob-havo: shaharni ayting.",
    },
    "ru": {
        Outcome.FAILED: "{what}: узнать не удалось, инструмент сообщил об ошибке ({result}).",
        Outcome.NO_TOOL: "{what}: для этого у меня нет инструмента.",
        Outcome.NO_CITY: "Погода: назовите город.",
    },
}
NOTHING = {
    "en": "I only stand in for a language model. I understand questions about today's date, "
    "the weather in a city, and arithmetic; I found none of these in your message.",
    "uz": "Men til modelining o‘rnini bosuvchi mashqman. Bugungi sana, shahardagi ob-havo va "
    "hisob haqidagi savollarni tushunaman; xabaringizda bularni topmadim.",
    "ru": "Я лишь заменяю языковую модель. Я понимаю вопросы о сегодняшней дате, о погоде "
    "в городе и арифметику; в вашем сообщении их нет.",
}


def answer(question: str, findings: Sequence[Finding]) -> str:
    """One sentence for each want, in the language of the question."""
    language = language_of(question)
    if not findings:
        return f"{NAME}: {NOTHING[language]}"
    return f"{NAME}: " + " ".join(_sentence(language, finding) for finding in findings)


def language_of(text: str) -> str:
    """``en``, ``uz`` or ``ru``."""
    if UZBEK.search(text):
        return "uz"
    return "ru" if CYRILLIC.search(text) else "en"


def finding(want: Want, result: str) -> Finding:
    """What a tool's result says about the want."""
    outcome = Outcome.FAILED if _failed(result) else Outcome.KNOWN
    return Finding(want, outcome, _in_words(result))


def _sentence(language: str, finding: Finding) -> str:
    want, result = finding.want, finding.result
    what = WHAT[language][want.kind].format(want.subject)
    if finding.outcome is not Outcome.KNOWN:
        return SENTENCES[language][finding.outcome].format(what=what, result=result.rstrip("."))
    if want.kind is not Kind.ARITHMETIC:
        return f"{what}: {result.rstrip('.')}."
    return f"{result.rstrip('.')}." if "=" in result else f"{what} = {result}."


def _failed(result: str) -> bool:
    return FAILURE.match(result) is not None or "error" in _object(result)


def _in_words(result: str) -> str:
    fields = _object(result)
    words = ", ".join(f"{name}: {value}" for name, value in fields.items()) if fields else result
    words = " ".join(words.split())
    return words if len(words) <= LONGEST_RESULT else f"{words[:LONGEST_RESULT]}…"


def _object(result: str) -> dict[str, object]:
    try:
        data = json.loads(result)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
