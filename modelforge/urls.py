"""The whole HTTP surface on one page."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from artifacts import api_agent as jobs
from artifacts import api_artifacts, api_jobs, api_storage
from enrollment import api as enrollment
from modelforge import health
from modelforge.login import login
from modelforge.metrics import Metrics
from nodes import api as registry
from nodes import api_agent, api_audit, api_control

agent = [
    path("enroll", enrollment.EnrollView.as_view()),
    path("credential", enrollment.RenewView.as_view()),
    path("heartbeat", api_agent.HeartbeatView.as_view()),
    path("facts", api_agent.FactsView.as_view()),
    path("goodbye", api_agent.GoodbyeView.as_view()),
    path("jobs/claim", jobs.ClaimView.as_view()),
    path("jobs/<uuid:id>/progress", jobs.ProgressView.as_view()),
    path("jobs/<uuid:id>/result", jobs.ResultView.as_view()),
]

admins = [
    path("node-enrollments", enrollment.EnrollmentList.as_view()),
    path("node-enrollments/<uuid:id>", enrollment.EnrollmentDetail.as_view()),
    path("node-enrollments/<uuid:id>/revoke", enrollment.EnrollmentRevoke.as_view()),
    path("nodes/<uuid:id>", api_control.NodeRevise.as_view()),
    path("nodes/<uuid:id>/disable", api_control.DisableView.as_view()),
    path("nodes/<uuid:id>/enable", api_control.EnableView.as_view()),
    path("nodes/<uuid:id>/retire", api_control.RetireView.as_view()),
    path("nodes/<uuid:id>/credential/rotate", enrollment.RotateView.as_view()),
    path("nodes/<uuid:id>/credential/revoke", enrollment.RevokeView.as_view()),
    path("storage-roots", api_storage.StorageRootList.as_view()),
    path("storage-roots/<uuid:id>", api_storage.StorageRootDetail.as_view()),
    path("storage-roots/<uuid:id>/approve", api_storage.StorageRootApprove.as_view()),
    path("storage-roots/<uuid:id>/retire", api_storage.StorageRootRetire.as_view()),
    path("jobs", api_jobs.JobList.as_view()),
    path("jobs/<uuid:id>", api_jobs.JobDetail.as_view()),
    path("jobs/<uuid:id>/cancel", api_jobs.JobCancel.as_view()),
    path("jobs/<uuid:id>/retry", api_jobs.JobRetry.as_view()),
    path("jobs/<uuid:id>/dismiss", api_jobs.JobDismiss.as_view()),
    path("jobs/<uuid:id>/forget", api_jobs.JobForget.as_view()),
    path("artifacts/<uuid:id>/verify", api_artifacts.ArtifactVerify.as_view()),
    path("artifacts/<uuid:id>/remove", api_artifacts.ArtifactRemove.as_view()),
]

readers = [
    path("hardware/nodes", registry.NodeList.as_view()),
    path("hardware/nodes/<uuid:id>", registry.NodeDetail.as_view()),
    path("hardware/nodes/<uuid:id>/telemetry", registry.NodeTelemetry.as_view()),
    path("artifacts", api_artifacts.ArtifactList.as_view()),
    path("artifacts/<uuid:id>", api_artifacts.ArtifactDetail.as_view()),
    path("audit-events", api_audit.AuditEventList.as_view()),
]

urlpatterns = [
    path("", RedirectView.as_view(url="/admin/")),
    path("admin/login/", login),
    path("admin/", admin.site.urls),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", Metrics.as_view()),
    path("api/schema", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs", SpectacularSwaggerView.as_view(url_name="schema")),
    path("api/v1/agent/", include(agent)),
    path("api/v1/admin/", include(admins)),
    path("api/v1/", include(readers)),
]

handler400 = "modelforge.handlers.bad_request"
handler403 = "modelforge.handlers.forbidden"
handler404 = "modelforge.handlers.not_found"
handler500 = "modelforge.handlers.server_error"
