"""Charts as inline SVG: no script, no library, readable by screen readers."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

WIDTH, HEIGHT, GAP = 720, 160, 2
FAULT = "#dc2626"
PLAIN = "#2563eb"


@dataclass(frozen=True)
class Bar:
    """One bar; ``fault`` is the share of it that is drawn in red from below."""

    label: str
    value: float
    fault: float = 0


def bars(title: str, values: Sequence[Bar]) -> SafeString:
    """A chart of upright bars, scaled to the highest, each told in words when pointed at."""
    top = max((bar.value for bar in values), default=0) or 1
    step = WIDTH / max(len(values), 1)
    drawn = (_bar(bar, top, number * step, step) for number, bar in enumerate(values))
    return format_html(
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{}" style="width:100%;max-width:{}px">'
        "<title>{}</title>{}</svg>",
        *(WIDTH, HEIGHT, title, WIDTH, title),
        format_html_join("", "{}", ((each,) for each in drawn)),
    )


def _bar(bar: Bar, top: float, left: float, step: float) -> SafeString:
    height = round(bar.value / top * HEIGHT, 1)
    fault = round(bar.fault / top * HEIGHT, 1)
    return format_html(
        "<g><title>{}: {}</title>{}{}</g>",
        bar.label,
        f"{bar.value:,.6g}",
        _box(left, step, height, PLAIN),
        _box(left, step, fault, FAULT) if fault else "",
    )


def _box(left: float, step: float, height: float, colour: str) -> SafeString:
    return format_html(
        '<rect x="{}" y="{}" width="{}" height="{}" fill="{}"/>',
        *(round(left, 1), round(HEIGHT - height, 1), round(max(step - GAP, 1), 1), height, colour),
    )
