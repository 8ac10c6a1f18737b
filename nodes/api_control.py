"""The operators' verbs by REST: disable, enable, retire, revise, and clear a conflict; each told in the history."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agent.protocol import Code
from agent.wire import FieldError
from nodes import control
from nodes.api import OneNode
from nodes.callers import Caller, IsOperator, Refused, caller_of
from nodes.models import Node
from nodes.query import OneOf, Strict, read_body
from nodes.serializers import NodeWhole
from nodes.serializers_parts import LabelsField


class NodeAct(Strict):
    """Why; told in the history."""

    reason = serializers.CharField(max_length=control.MAX_REASON)


class NodeEnabling(Strict):
    """Why, where there is something to say; told in the history."""

    reason = serializers.CharField(max_length=control.MAX_REASON, required=False, allow_blank=True, default="")


class NodeVerb(OneNode):
    """What operators do to a node, with a reason."""

    permission_classes = [IsOperator]

    def do(self, request: Request, act: Callable[..., Node], kind: type[Strict] = NodeAct) -> Response:
        """Read, act, answer."""
        by, now = caller_of(request), datetime.now(UTC)
        node = act(self.get_object(), **read_body(request, kind), by=by, now=now)
        return self.shown(node, now)


class DisableView(NodeVerb):
    """Disable a node: every further publication is refused with 403 ``node_disabled``."""

    @extend_schema(tags=["admin"], summary="Disable a node", request=NodeAct, responses=NodeWhole)
    def post(self, request: Request, **kwargs: Any) -> Response:
        """Disable it."""
        return self.do(request, control.disable)


class EnableView(NodeVerb):
    """Enable a disabled node; its agent goes on by itself."""

    @extend_schema(tags=["admin"], summary="Enable a node", request=NodeEnabling, responses=NodeWhole)
    def post(self, request: Request, **kwargs: Any) -> Response:
        """Enable it."""
        return self.do(request, control.enable, NodeEnabling)


class RetireView(NodeVerb):
    """Retire a node for good: its history stays, its agent hears 410 ``node_retired``."""

    @extend_schema(tags=["admin"], summary="Retire a node", request=NodeAct, responses=NodeWhole)
    def post(self, request: Request, **kwargs: Any) -> Response:
        """Retire it."""
        return self.do(request, control.retire)


class NodeRevision(serializers.Serializer[Any]):
    """What an operator may change; what is left out stays."""

    display_name = serializers.CharField(max_length=255, required=False)
    role = serializers.CharField(max_length=64, required=False, allow_blank=True)
    labels = LabelsField(required=False, help_text="Replaces all labels.")
    production_eligible = serializers.BooleanField(required=False)
    lab_eligible = serializers.BooleanField(required=False)
    benchmark_eligible = serializers.BooleanField(required=False)
    identity_conflict = OneOf(
        choices=[False], required=False, help_text="false clears the flag, once the copy is gone; with a `reason`."
    )
    reason = serializers.CharField(max_length=control.MAX_REASON, required=False)


IF_MATCH = OpenApiParameter(
    "If-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    required=True,
    description="The ETag of the node as it was read; `*` for whatever stands.",
)


class NodeRevise(OneNode):
    """Change what operators say about a node."""

    permission_classes = [IsOperator]

    @extend_schema(
        tags=["admin"], summary="Revise a node", parameters=[IF_MATCH], request=NodeRevision, responses=NodeWhole
    )
    def patch(self, request: Request, **kwargs: Any) -> Response:
        """Revise it."""
        by, now = caller_of(request), datetime.now(UTC)
        node = self.get_object()
        version = version_asked(request.headers.get("If-Match"), node.version)
        return self.shown(revised(node, request.data, version=version, by=by, now=now), now)


def version_asked(header: str | None, present: int, what: str = "node") -> int:
    """The version that ``If-Match`` stands for.

    Raises:
        Refused: ``precondition_required`` without the header, ``precondition_failed`` where no tag fits.
    """
    if not header:
        raise Refused(
            Code.PRECONDITION_REQUIRED,
            f"Send If-Match with the ETag of the {what} as you read it, so that nobody's change is overwritten.",
        )
    if header.strip() == "*" or f'"{present}"' in [tag.strip() for tag in header.split(",")]:
        return present
    raise Refused(
        Code.PRECONDITION_FAILED,
        f'The {what} is at version "{present}", not {header[:64]}: somebody changed it meanwhile. Read it again.',
    )


def revised(node: Node, body: Any, *, version: int, by: Caller, now: datetime) -> Node:
    """The node with the changes made and, where that is asked, its conflict cleared: both or neither."""
    if not isinstance(body, dict):
        raise Refused(Code.INVALID, "Send an object with the fields to change.")
    changes = {name: value for name, value in body.items() if name not in {"identity_conflict", "reason"}}
    clears = "identity_conflict" in body
    if clears and body["identity_conflict"] is not False:
        raise _fault("identity_conflict", "One may only clear it: say false.")
    if "reason" in body and not clears:
        raise _fault("reason", 'A reason goes with "identity_conflict": false.')
    with transaction.atomic():
        node = control.revise(node, changes, version=version, by=by, now=now)
        return control.clear_conflict(node, reason=body.get("reason", ""), by=by, now=now) if clears else node


def _fault(field: str, detail: str) -> Refused:
    return Refused(Code.INVALID, f"{field}: {detail}", errors=[FieldError(field=field, detail=detail)])
