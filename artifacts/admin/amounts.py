"""Amounts of bytes as people type them: ``50 GiB``, ``2 TB``, ``10 %``; and the form fields that take them."""

import re
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminTextInputWidget

from artifacts import reserves

UNITS = {
    "": 1,
    "b": 1,
    **{letter: 1024**power for power, letter in enumerate("kmgtp", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgtp", 1)},
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgtp", 1)},
}
_AMOUNT = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,6})?)\s*([a-z]{0,3})", re.ASCII | re.IGNORECASE)
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%", re.ASCII)
REMEDY = "Write an amount with its unit, for example 50 GiB or 2 TB."


def parse(text: str) -> int | None:
    """Bytes; None where the text is no amount."""
    found = _AMOUNT.fullmatch(text.strip())
    if found is None or found[2].lower() not in UNITS:
        return None
    amount = (
        round(float(found[1]) * UNITS[found[2].lower()]) if "." in found[1] else int(found[1]) * UNITS[found[2].lower()]
    )
    return amount if amount <= reserves.MOST_BYTES else None


def say(amount: int) -> str:
    """The amount in the largest unit that says it exactly, so that a form gives back what it was given."""
    for unit, letters in ((1024, "KMGTP"), (1000, "KMGTP")):
        for power in range(len(letters), 0, -1):
            if amount and amount % unit**power == 0:
                return f"{amount // unit**power} {letters[power - 1]}{'i' if unit == 1024 else ''}B"
    return f"{amount} B"


class AmountField(forms.CharField):
    """Bytes, or None where it is left empty."""

    def __init__(self, label: str, *, help_text: str = "", placeholder: str = "") -> None:
        widget = UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", "placeholder": placeholder})
        super().__init__(label=label, required=False, max_length=32, help_text=help_text, widget=widget)

    def prepare_value(self, value: Any) -> Any:
        """As it is typed."""
        return say(value) if isinstance(value, int) else value

    def clean(self, value: Any) -> Any:
        """The bytes."""
        text = super().clean(value)
        if not text:
            return None
        amount = parse(text)
        if amount is None:
            raise forms.ValidationError(REMEDY)
        return amount


class ReserveField(AmountField):
    """``{"reserve_bytes": ...}`` or ``{"reserve_percent": ...}``; nothing where it is left empty."""

    def prepare_value(self, value: Any) -> Any:
        """As it is typed."""
        if not isinstance(value, dict):
            return value
        percent = value.get("reserve_percent")
        return f"{percent:g} %" if percent is not None else say(value["reserve_bytes"])

    def clean(self, value: Any) -> Any:
        """The reserve by the name of its kind."""
        found = _PERCENT.fullmatch(str(value or "").strip())
        if found is not None:
            return {"reserve_bytes": None, "reserve_percent": float(found[1])}
        amount = super().clean(value)
        return {} if amount is None else {"reserve_bytes": amount, "reserve_percent": None}
