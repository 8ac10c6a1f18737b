"""The fields that the pages' forms share."""

from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from nodes import labels


class LabelsField(forms.CharField):
    """Labels as lines of ``key=value``."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("widget", UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false"}))
        kwargs.setdefault("help_text", "One key=value a line, for example site=office.")
        kwargs.setdefault("required", False)
        kwargs.setdefault("max_length", 64 * 330)
        super().__init__(**kwargs)

    def prepare_value(self, value: Any) -> Any:
        """Lines out of a dictionary."""
        return "\n".join(f"{key}={text}" for key, text in sorted(value.items())) if isinstance(value, dict) else value

    def clean(self, value: Any) -> Any:
        """The dictionary out of lines."""
        found: dict[str, str] = {}
        for position, line in enumerate(str(super().clean(value)).splitlines(), 1):
            if not line.strip():
                continue
            key, equals, text = (part.strip() for part in line.partition("="))
            if not equals:
                raise forms.ValidationError(f"Line {position} has no “=”: write key=value.")
            if key in found:
                raise forms.ValidationError(f"Line {position} names {key!r} again: a key stands once.")
            found[key] = text
        for fault in labels.faults(found):
            raise forms.ValidationError(f"{fault.field.removeprefix('labels.')}: {fault.detail}")
        return found


def text(
    label: str, *, most: int, required: bool = False, help_text: str = "", placeholder: str = ""
) -> forms.CharField:
    """One line of text."""
    widget = UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", "placeholder": placeholder})
    return forms.CharField(label=label, max_length=most, required=required, help_text=help_text, widget=widget)


def switch(label: str, help_text: str = "") -> forms.BooleanField:
    """On or off."""
    return forms.BooleanField(label=label, required=False, help_text=help_text, widget=UnfoldBooleanSwitchWidget())


def choice(label: str, choices: list[tuple[str, str]], *, initial: str, help_text: str = "") -> forms.ChoiceField:
    """One of a few."""
    return forms.ChoiceField(
        label=label, choices=choices, initial=initial, help_text=help_text, widget=UnfoldAdminSelectWidget()
    )


class ReasonForm(forms.Form):
    """A confirmation that says why."""

    reason = text("Reason", most=255, required=True, help_text="Told in the history.")


class OptionalReasonForm(forms.Form):
    """A confirmation that may say why."""

    reason = text("Reason", most=255, help_text="Optional; told in the history.")


class RevisionForm(forms.Form):
    """What operators say about a node."""

    display_name = text("Display name", most=255, required=True)
    role = text("Role", most=64, help_text="For example primary-inference.")
    labels = LabelsField(label="Labels")
    production_eligible = switch("Production", "Leave off until the node has passed acceptance.")
    lab_eligible = switch("Lab")
    benchmark_eligible = switch("Benchmark")
    version = forms.IntegerField(widget=forms.HiddenInput)
