"""The forms that register and revise a storage root, and where a refusal's faults stand on them."""

from collections.abc import Sequence
from typing import Any

from django import forms

from agent.wire import FieldError
from artifacts import reserves
from artifacts.admin.amounts import AmountField, ReserveField
from nodes.admin.forms import choice, text
from nodes.callers import Refused
from nodes.models import Node

NODES_OFFERED = 500

RESERVE = f"To be left free: an amount or a share, such as 50 GiB or 10 %. Empty: {reserves.DEFAULT_PERCENT:g} %."
CEILING = "What models may fill here at most, such as 2 TiB. Empty: as much as the reserve leaves."


class RegistrationForm(forms.Form):
    """A folder of a node."""

    node = choice("Node", [], initial="")
    container_path = text(
        "Container path",
        most=4096,
        required=True,
        placeholder="/data/artifacts/models",
        help_text="The folder as the agent knows it, below its artifact volume.",
    )
    host_path = text(
        "Host path",
        most=4096,
        required=True,
        placeholder="/mnt/cache/appdata/modelforge-node-agent/artifacts/models",
        help_text="The same folder as the server knows it. Nobody but people reads it.",
    )
    purpose = text("Purpose", most=64, required=True)
    reserve = ReserveField("Reserve", help_text=RESERVE, placeholder="50 GiB")
    ceiling = AmountField("Ceiling", help_text=CEILING)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["purpose"].initial = "artifacts"
        nodes = Node.objects.filter(retired_at=None).order_by("display_name", "pk")
        listed = nodes.values_list("pk", "display_name", "hostname")[:NODES_OFFERED]
        names = [(str(key), name if name == host else f"{name} ({host})") for key, name, host in listed]
        self.fields["node"].choices = [("", "Choose a node" if names else "No node yet: enroll one first"), *names]  # type: ignore[attr-defined]


class RevisionForm(forms.Form):
    """What an operator may change of a root."""

    host_path = text("Host path", most=4096, required=True, help_text="The folder as the server knows it.")
    purpose = text("Purpose", most=64, required=True)
    reserve = ReserveField("Reserve", help_text="To be left free: an amount or a share, such as 50 GiB or 10 %.")
    ceiling = AmountField("Ceiling", help_text=CEILING)
    version = forms.IntegerField(widget=forms.HiddenInput)


FIELDS = {"reserve_bytes": "reserve", "reserve_percent": "reserve", "ceiling_bytes": "ceiling"}


def by_form(refused: Refused) -> Refused:
    """A refusal with its faults at the fields of the form."""
    faults: Sequence[FieldError] = [
        FieldError(field=FIELDS.get(fault.field, fault.field), detail=fault.detail) for fault in refused.errors
    ]
    return Refused(refused.code, refused.detail, errors=faults)
