"""How far a ledger has come."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Account:
    """A total that only grows, in US dollars, and the name of the ledger that it is of.

    A ledger that was lost and begun anew has another name: its total begins at nothing again.
    """

    ledger: str = ""
    total: Decimal = Decimal(0)
