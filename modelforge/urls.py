"""The whole HTTP surface on one page."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from enrollment import api as enrollment
from modelforge import health
from modelforge.metrics import Metrics

agent = [
    path("enroll", enrollment.EnrollView.as_view()),
    path("credential", enrollment.RenewView.as_view()),
]

admins = [
    path("node-enrollments", enrollment.EnrollmentList.as_view()),
    path("node-enrollments/<uuid:id>", enrollment.EnrollmentDetail.as_view()),
    path("node-enrollments/<uuid:id>/revoke", enrollment.EnrollmentRevoke.as_view()),
    path("nodes/<uuid:id>/credential/rotate", enrollment.RotateView.as_view()),
    path("nodes/<uuid:id>/credential/revoke", enrollment.RevokeView.as_view()),
]

urlpatterns = [
    path("", RedirectView.as_view(url="/admin/")),
    path("admin/", admin.site.urls),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", Metrics.as_view()),
    path("api/schema", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs", SpectacularSwaggerView.as_view(url_name="schema")),
    path("api/v1/agent/", include(agent)),
    path("api/v1/admin/", include(admins)),
]

handler400 = "modelforge.handlers.bad_request"
handler403 = "modelforge.handlers.forbidden"
handler404 = "modelforge.handlers.not_found"
handler500 = "modelforge.handlers.server_error"
