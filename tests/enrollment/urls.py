"""The endpoints of trust, and a beat to prove a credential with."""

from typing import Any

from django.urls import path

from agent.wire import Beat, BeatReply
from enrollment import api
from nodes import heartbeats
from nodes.agent_view import AgentView


class BeatView(AgentView):
    message = Beat

    def receive(self, message: Beat, *, by: Any, now: Any) -> BeatReply:
        return heartbeats.receive(message, by=by, now=now)


_ADMIN = "api/v1/admin"
urlpatterns = [
    path("api/v1/agent/enroll", api.EnrollView.as_view()),
    path("api/v1/agent/credential", api.RenewView.as_view()),
    path("api/v1/agent/heartbeat", BeatView.as_view()),
    path(f"{_ADMIN}/node-enrollments", api.EnrollmentList.as_view()),
    path(f"{_ADMIN}/node-enrollments/<uuid:id>", api.EnrollmentDetail.as_view()),
    path(f"{_ADMIN}/node-enrollments/<uuid:id>/revoke", api.EnrollmentRevoke.as_view()),
    path(f"{_ADMIN}/nodes/<uuid:id>/credential/rotate", api.RotateView.as_view()),
    path(f"{_ADMIN}/nodes/<uuid:id>/credential/revoke", api.RevokeView.as_view()),
]
