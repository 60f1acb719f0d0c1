"""The cities that a question names: «Toshkentda», "in London", «в Москве»."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

CAPITALISED = r"[A-ZА-ЯЁЎҚҒҲ][\w'‘’ʻʼ.-]*\w"
NAME = rf"{CAPITALISED}(?:\s{CAPITALISED}){{0,2}}"
SEVERAL = rf"{NAME}(?:(?:,\s|\sand\s|\sи\s){NAME})*"

PATTERNS = (
    re.compile(rf"\b(?:in|for|at)\s+({SEVERAL})"),
    re.compile(rf"\b(?:[Вв]о?)\s+({SEVERAL})"),
    re.compile(rf"\b((?:{CAPITALISED}\sva\s)*{CAPITALISED}?(?:da|dagi|ning))\b"),
    re.compile(rf"\b({CAPITALISED})\s+shah[ra]\w*"),
    re.compile(rf"\b({NAME})(?:'s)?\s+(?:weather|forecast)\b"),
    # Written small, a name is told from other words by its place only.
    re.compile(r"\b(?:weather|forecast|temperature)\s+(?:like\s+)?(?:in|for|at)\s+(\w[\w'-]*)"),
    re.compile(r"\bпогод\w*\s+во?\s+([\w-]+)"),
    re.compile(r"\b([\w'‘’ʻʼ-]+?)da(?:gi)?\s+(?:bugun\s+|hozir\s+)?(?:ob-?\s?havo|havo)\b"),
)
SEPARATOR = re.compile(r",\s|\sand\s|\sи\s|\sva\s")
UZBEK_CASE = re.compile(r"(?<=\w{2})(?:dagi|da|ning)$")

NOT_CITIES = {
    *("celsius", "fahrenheit", "the", "what", "today", "current", "degrees", "english", "russian"),
    *("qayer", "bu", "u", "shu", "uzbek"),
}

# Russian names whose prepositional case does not tell the nominative.
IN_A = (
    *("Москва", "Самара", "Уфа", "Бухара", "Хива", "Астана", "Анкара", "Варшава", "Прага"),
    *("Вена", "Женева", "Барселона", "Фергана", "Тула", "Калуга", "Пенза", "Анапа", "Ялта"),
)
UNCHANGED = {"Сочи", "Тбилиси", "Хельсинки", "Дели", "Батуми", "Карши", "Навои"}
NOMINATIVE = {f"{name[:-1]}е": name for name in IN_A} | {name: name for name in UNCHANGED}


@dataclass(frozen=True)
class City:
    """A name and where in the text it stood."""

    name: str
    position: int


def cities_in(text: str) -> list[City]:
    """The cities that the text names, in its order, each once."""
    found: dict[str, City] = {}
    for pattern in PATTERNS:
        if found and pattern in PATTERNS[-3:]:
            break
        for match in pattern.finditer(text):
            for name in _names(match.group(1)):
                found.setdefault(name.casefold(), City(name, match.start(1)))
    return sorted(found.values(), key=lambda city: city.position)


def _names(several: str) -> Iterator[str]:
    for written in SEPARATOR.split(several):
        name = _base_form(written.removesuffix("'s"))
        if name.casefold() not in NOT_CITIES:
            yield name


def _base_form(name: str) -> str:
    if re.search("[А-Яа-яЁё]", name):
        return _russian_nominative(name[:1].upper() + name[1:])
    shortened = UZBEK_CASE.sub("", name)
    return shortened[:1].upper() + shortened[1:]


def _russian_nominative(name: str) -> str:
    """The nominative of a name in the prepositional case, by table and by ending."""
    if name in NOMINATIVE:
        return NOMINATIVE[name]
    if name.endswith("и"):
        return f"{name[:-1]}ь"
    return name.removesuffix("е")
