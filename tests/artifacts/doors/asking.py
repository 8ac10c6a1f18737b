"""Bodies sent by REST."""

from typing import Any

from django.test import Client

from artifacts.models import StorageRoot

JOBS = "/api/v1/admin/jobs"


def send(client: Client, path: str, body: Any, method: str = "post", **headers: str) -> Any:
    """The response to a body."""
    return getattr(client, method)(path, body, content_type="application/json", headers=headers)


def order(client: Client, root: StorageRoot, *, key: str = "", **fields: Any) -> Any:
    """The response to an order."""
    headers = {"Idempotency-Key": key} if key else {}
    return send(client, JOBS, {"root_id": str(root.pk), "repo_id": "org/model"} | fields, **headers)
