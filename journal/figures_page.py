"""The admin's page of figures: whose, of how many days, and their charts and tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils import timezone

from journal.figures.cells import Cell
from journal.selectors import Reach
from journal.statistics import Period, Statistics, last_days, statistics_of
from tenants.context import Reach as Place
from tenants.context import current
from tenants.models import Tenant

if TYPE_CHECKING:
    from django.forms import Select as UnfoldAdminSelectWidget
    from django.forms import TextInput as UnfoldAdminTextInputWidget
else:
    from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

PLAIN, FAULT = "var(--color-primary-600)", "#dc2626"


class FiguresForm(forms.Form):
    """Whose figures, and of how many days."""

    days = forms.TypedChoiceField(
        choices=[(1, "1 day"), (7, "7 days"), (30, "30 days"), (90, "90 days")],
        coerce=int,
        widget=UnfoldAdminSelectWidget(),
    )
    # Not a choice of all tenants: there may be a hundred thousand.
    tenant = forms.CharField(
        required=False,
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "slug; empty for everybody"}),
    )

    def clean_tenant(self) -> Tenant | None:
        """The tenant of that slug; None is everybody."""
        slug = self.cleaned_data["tenant"]
        tenant = Tenant.objects.filter(slug=slug).first() if slug else None
        if slug and tenant is None:
            raise forms.ValidationError(f"No tenant has the slug {slug}.")
        return tenant


@dataclass(frozen=True)
class Chart:
    """Bars by day; ``data`` is Chart.js's, as JSON."""

    title: str
    data: str


def figures_context(query: dict[str, Any]) -> dict[str, Any]:
    """What the page shows for ``query``; of everybody's last 30 days where that makes no sense.

    For a tenant's own staff everybody is that tenant, whose days were added up for it alone.
    """
    form = FiguresForm({"days": 30, **query})
    days, tenant = 30, None
    if form.is_valid():
        days, tenant = form.cleaned_data["days"], form.cleaned_data["tenant"]
    where = current()
    own = where.tenant_id if isinstance(where, Place) else None
    reach = Reach(own if tenant is None else tenant.id)
    period = last_days(days, timezone.now())
    found = statistics_of(reach, period)
    return {
        "form": form,
        "found": found,
        "charts": _charts(found, period),
        "models": _table(found.by_model, "Model"),
        "operations": _table(found.by_operation, "Operation"),
        "failures": {
            "headers": ["Cause", "Calls"],
            "rows": [list(each) for each in found.totals.failures.most_common()],
        },
    }


def _charts(found: Statistics, period: Period) -> list[Chart]:
    """The course of calls with their failures, of cost, and of latency."""
    days = _days_of(period)
    cells = {f"{cell.span:%Y-%m-%d}": cell for cell in found.course}

    def of(figure: Callable[[Cell], float | None]) -> list[float | None]:
        return [figure(cells[day]) if day in cells else 0 for day in days]

    calls = [
        ("answered", of(lambda cell: cell.calls - cell.errors), PLAIN),
        # None where there is none: Chart.js would let the colour show behind rounded corners.
        ("failed", [each or None for each in of(lambda cell: cell.errors)], FAULT),
    ]
    cost = of(lambda cell: (cell.sums["cost_micros"] or 0) / 1_000_000)
    slow = of(lambda cell: cell.latency(0.95))
    return [
        _chart("Calls by day", days, calls),
        _chart("Cost by day, $", days, [("cost, $", cost, PLAIN)]),
        _chart("Latency by day, 95th percentile, ms", days, [("95 % within, ms", slow, PLAIN)]),
    ]


def _days_of(period: Period) -> list[str]:
    first, last = period.since.date(), period.until.date()
    return [_iso(first + timedelta(days=number)) for number in range((last - first).days + 1)]


def _iso(day: date) -> str:
    return f"{day:%Y-%m-%d}"


def _chart(
    title: str, labels: list[str], series: Sequence[tuple[str, list[float | None], str]]
) -> Chart:
    datasets = [
        {
            "label": label,
            "data": values,
            "backgroundColor": colour,
            "maxBarThickness": 24,
            "stack": "all",
            "displayYAxis": True,
            "maxTicksXLimit": 12,
        }
        for label, values, colour in series
    ]
    return Chart(title, json.dumps({"labels": labels, "datasets": datasets}))


def _table(cells: Sequence[Cell], name: str) -> dict[str, Any]:
    return {
        "headers": [name, "Calls", "Failed", "Tokens", "Cost, $", "95 % within, ms"],
        "rows": [
            [
                cell.names[0] or "–",
                cell.calls,
                cell.errors,
                _or_dash(cell.sums["total_tokens"]),
                _or_dash(_dollars(cell)),
                _or_dash(cell.latency(0.95)),
            ]
            for cell in cells
        ],
    }


def _dollars(cell: Cell) -> str | None:
    micros = cell.sums["cost_micros"]
    return None if micros is None else f"{micros / 1_000_000:.4f}"


def _or_dash(value: object) -> object:
    return "–" if value is None else value
