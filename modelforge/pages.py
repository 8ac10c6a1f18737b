"""How the admin pages look, and what stands in their sidebar; settings take ``UNFOLD`` from here."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy


def _static(path: str) -> Callable[[HttpRequest], str]:
    """A file's address, asked for once the settings stand."""

    def address(_: HttpRequest) -> str:
        return static(path)

    return address


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "ModelForge",
    "SITE_HEADER": "ModelForge",
    "SITE_SYMBOL": "memory",
    "SITE_URL": None,
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": _static("nodes/favicon.svg")},
    ],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "DASHBOARD_CALLBACK": "modelforge.dashboard.home",
    "STYLES": [_static("nodes/admin.css")],
    "SCRIPTS": [_static("nodes/admin.js")],
    "COLORS": {
        "primary": {
            "50": "#f0fdfa",
            "100": "#ccfbf1",
            "200": "#99f6e4",
            "300": "#5eead4",
            "400": "#2dd4bf",
            "500": "#14b8a6",
            "600": "#0d9488",
            "700": "#0f766e",
            "800": "#115e59",
            "900": "#134e4a",
            "950": "#042f2e",
        }
    },
    "SIDEBAR": {
        "navigation": [
            {
                "title": "Fleet",
                "items": [
                    {"title": "Home", "icon": "home", "link": reverse_lazy("admin:index")},
                    {
                        "title": "Compute nodes",
                        "icon": "dns",
                        "link": reverse_lazy("admin:nodes_node_changelist"),
                        "permission": "nodes.admin.access.may_read",
                    },
                ],
            },
            {
                "title": "Models",
                "separator": True,
                "items": [
                    {
                        "title": "Artifacts",
                        "icon": "deployed_code",
                        "link": reverse_lazy("admin:artifacts_artifact_changelist"),
                        "permission": "nodes.admin.access.may_read",
                    },
                    {
                        "title": "Jobs",
                        "icon": "download",
                        "link": reverse_lazy("admin:artifacts_job_changelist"),
                        "permission": "nodes.admin.access.may_read",
                    },
                    {
                        "title": "Storage roots",
                        "icon": "hard_drive",
                        "link": reverse_lazy("admin:artifacts_storageroot_changelist"),
                        "permission": "nodes.admin.access.may_read",
                    },
                ],
            },
            {
                "title": "Trust",
                "separator": True,
                "items": [
                    {
                        "title": "Enrollment",
                        "icon": "key",
                        "link": reverse_lazy("admin:enrollment_enrollmenttoken_changelist"),
                        "permission": "nodes.admin.access.may_read",
                    },
                    {
                        "title": "API keys",
                        "icon": "vpn_key",
                        "link": reverse_lazy("admin:enrollment_apikey_changelist"),
                        "permission": "nodes.admin.access.may_read",
                    },
                    {
                        "title": "Users",
                        "icon": "group",
                        "link": reverse_lazy("admin:auth_user_changelist"),
                        "permission": "nodes.admin.access.may_read",
                    },
                    {
                        "title": "Audit",
                        "icon": "history",
                        "link": reverse_lazy("admin:nodes_auditevent_changelist"),
                        "permission": "nodes.admin.access.may_read",
                    },
                ],
            },
        ],
    },
}
