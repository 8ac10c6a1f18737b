"""The REST endpoints of trust: agents enroll and renew; operators invite, rotate and revoke."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import structlog
from django.db.models import Q
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agent.protocol import MAX_ENROLL_BYTES, SPOKEN, VERSION_HEADER, parse_version
from agent.wire import CredentialReply, Enroll, Enrolled
from enrollment import admission, attempts, credentials, secrets
from enrollment.auth import bearer
from enrollment.invitations import Invitation, TokenState, in_state
from enrollment.models import EnrollmentToken
from enrollment.serializers import (
    CredentialRotated,
    CredentialRotation,
    CredentialsRevoked,
    EnrollmentTokenMade,
    EnrollmentTokenShown,
    NodeInvitation,
    OptionalReason,
    TokenQuery,
)
from nodes import idempotency, refusals
from nodes.agent_view import AgentView
from nodes.callers import IsOperator, IsReader, NodeCaller, Refused, address_of, caller_of
from nodes.idempotency import Made
from nodes.models import Node
from nodes.query import Pages, read_body, read_query

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Applicant:
    """Who wants to enroll: nobody we know, with a token yet to be proven."""

    token: str
    address: str
    request_id: str


class EnrollView(AgentView):
    """``POST agent/enroll``: the one-time token for a node-scoped credential."""

    message = Enroll
    limit = MAX_ENROLL_BYTES

    def caller(self, request: HttpRequest, now: datetime) -> Applicant:
        """The holder of a token of ours, in the one protocol that we speak; asking who it is consumes nothing.

        An unknown token counts against its address.
        """
        header = request.headers.get(VERSION_HEADER)
        if parse_version(header) not in SPOKEN:
            raise refusals.protocol_unsupported(header)
        applicant = Applicant(bearer(request), address_of(request), getattr(request, "request_id", ""))
        try:
            admission.prove(applicant.token)
        except Refused as refused:
            parsed = secrets.parse(applicant.token, secrets.Kind.ENROLLMENT)
            handle = parsed.handle if parsed else "malformed"
            raise attempts.failed("enroll", refused, address=applicant.address, handle=handle, now=now) from None
        return applicant

    def receive(self, message: Enroll, *, by: Applicant, now: datetime) -> Enrolled:
        """Admit it; a refusal leaves a line in the log."""
        try:
            return admission.admit(message, by.token, address=by.address, request_id=by.request_id, now=now)
        except Refused as refused:
            parsed = secrets.parse(by.token, secrets.Kind.ENROLLMENT)
            said = {"code": refused.code.value, "address": by.address, "node_id": str(message.node_id)}
            log.warning("enrollment refused", handle=parsed.handle if parsed else "malformed", **said)
            raise


class RenewView(AgentView):
    """``POST agent/credential``: a node renews its own credential; the body is empty."""

    def receive(self, message: None, *, by: NodeCaller, now: datetime) -> CredentialReply:
        """Renew it; the new one is told once."""
        credential, text = credentials.renew(by=by, now=now)
        return CredentialReply(credential=text, old_dies_at=credential.node.rotation_ends_at or now)


_TAGS = ["admin"]


class EnrollmentList(GenericAPIView[EnrollmentToken]):
    """Enrollment tokens: the list, and a new one."""

    queryset = EnrollmentToken.objects.order_by("-created_at", "-id")
    serializer_class = EnrollmentTokenShown
    pagination_class = Pages
    filter_backends = ()

    def get_permissions(self) -> list[BasePermission]:
        """Readers read, operators invite."""
        return [IsReader() if self.request.method in SAFE_METHODS else IsOperator()]

    @extend_schema(
        operation_id="node_enrollments_list",
        tags=_TAGS,
        summary="List enrollment tokens",
        parameters=[TokenQuery],
        responses=EnrollmentTokenShown(many=True),
    )
    def get(self, request: Request) -> Response:
        """List enrollment tokens, newest first, without their secrets."""
        query, now = read_query(request, TokenQuery), datetime.now(UTC)
        standing = in_state(TokenState(query["state"]), now) if "state" in query else Q()
        page = self.paginate_queryset(self.get_queryset().filter(standing))
        return self.get_paginated_response(EnrollmentTokenShown(page, many=True, context={"now": now}).data)

    @extend_schema(
        operation_id="node_enrollments_create",
        tags=_TAGS,
        summary="Invite a node",
        request=NodeInvitation,
        responses={201: EnrollmentTokenMade},
        parameters=[idempotency.PARAMETER],
    )
    def post(self, request: Request) -> Response:
        """Invite a node: a one-time enrollment token, told this once."""
        by, now = caller_of(request), datetime.now(UTC)

        def make() -> Made:
            body = read_body(request, NodeInvitation)
            lifetime = timedelta(seconds=body.pop("expires_in_seconds"))
            token, secret = admission.invite(Invitation(lifetime=lifetime, **body), by=by, now=now)
            answer = EnrollmentTokenShown(token, context={"now": now}).data | {"token": secret}
            return Made(answer, created=str(token.pk), secret=True)

        return idempotency.once(request, make, by=by, now=now)


class EnrollmentDetail(APIView):
    """One enrollment token."""

    permission_classes = (IsReader,)

    @extend_schema(
        operation_id="node_enrollments_retrieve",
        tags=_TAGS,
        summary="Read an enrollment token",
        responses=EnrollmentTokenShown,
    )
    def get(self, request: Request, id: UUID) -> Response:
        """Where it stands; never its secret."""
        return Response(EnrollmentTokenShown(get_object_or_404(EnrollmentToken, pk=id)).data)


class EnrollmentRevoke(APIView):
    """Taking an enrollment token back."""

    permission_classes = (IsOperator,)

    @extend_schema(
        operation_id="node_enrollments_revoke",
        tags=_TAGS,
        summary="Revoke an enrollment token",
        request=OptionalReason,
        responses=EnrollmentTokenShown,
    )
    def post(self, request: Request, id: UUID) -> Response:
        """Take it back at once."""
        token = get_object_or_404(EnrollmentToken, pk=id)
        reason, now = read_body(request, OptionalReason)["reason"], datetime.now(UTC)
        revoked = admission.revoke(token, reason=reason, by=caller_of(request), now=now)
        return Response(EnrollmentTokenShown(revoked, context={"now": now}).data)


class RotateView(APIView):
    """Rotating a node's credential."""

    permission_classes = (IsOperator,)

    @extend_schema(
        operation_id="node_credential_rotate",
        tags=_TAGS,
        summary="Rotate a node's credential",
        request=CredentialRotation,
        responses=CredentialRotated,
        parameters=[idempotency.PARAMETER],
    )
    def post(self, request: Request, id: UUID) -> Response:
        """A new credential, told this once; the old one dies with its first use, or when the overlap is over."""
        node, by, now = get_object_or_404(Node, pk=id), caller_of(request), datetime.now(UTC)

        def make() -> Made:
            body = read_body(request, CredentialRotation)
            overlap = timedelta(seconds=body["overlap_seconds"])
            credential, text = credentials.rotate(node, overlap=overlap, reason=body["reason"], by=by, now=now)
            answer = {
                "node_id": node.pk,
                "credential": text,
                "credential_id": credential.pk,
                "last_four": credential.last_four,
                "issued_at": now,
                "old_dies_at": credential.node.rotation_ends_at,
            }
            return Made(CredentialRotated(answer).data, created=str(credential.pk), secret=True, status=200)

        return idempotency.once(request, make, by=by, now=now)


class RevokeView(APIView):
    """Revoking a node's credentials."""

    permission_classes = (IsOperator,)

    @extend_schema(
        operation_id="node_credential_revoke",
        tags=_TAGS,
        summary="Revoke a node's credentials",
        request=OptionalReason,
        responses=CredentialsRevoked,
    )
    def post(self, request: Request, id: UUID) -> Response:
        """Revoke all of them at once, without a replacement."""
        node = get_object_or_404(Node, pk=id)
        reason, now = read_body(request, OptionalReason)["reason"], datetime.now(UTC)
        revoked = credentials.revoke(node, reason=reason, by=caller_of(request), now=now)
        return Response(CredentialsRevoked({"node_id": node.pk, "revoked": revoked}).data)
