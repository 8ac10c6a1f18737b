"""What operators do to jobs by REST, and who may."""

from datetime import datetime
from uuid import uuid4

import pytest
from django.test import Client

from artifacts.models import StorageRoot
from nodes.callers import AUDITORS, OPERATORS
from tests.artifacts.doors.asking import order, send
from tests.artifacts.showing import a_job
from tests.nodes.browsing import at_the_pages, person
from tests.nodes.hearing import told

pytestmark = pytest.mark.django_db
URL = "/api/v1/admin/jobs"


def test_a_queued_job_is_cancelled_and_tried_again(api: Client, root: StorageRoot) -> None:
    job = order(api, root).json()
    off = send(api, f"{URL}/{job['id']}/cancel", {"reason": "wrong one"}).json()
    assert (off["state"], off["cancelled_by"]) == ("cancelled", "admin token")
    again = send(api, f"{URL}/{job['id']}/retry", {}).json()
    assert (again["state"], again["cancelled_by"], again["finished_at"]) == ("queued", "", None)
    assert told("job.cancelled", "job.retried") == ["job.cancelled", "job.retried"]


def test_a_running_job_is_told_to_stop(api: Client, root: StorageRoot, now: datetime) -> None:
    job = a_job(root, now, state="running")
    shown = send(api, f"{URL}/{job.pk}/cancel", {}).json()
    assert (shown["state"], shown["cancel_requested_at"] is not None) == ("running", True)


@pytest.mark.parametrize(
    ("state", "verb"), [("succeeded", "cancel"), ("succeeded", "retry"), ("queued", "retry"), ("queued", "dismiss")]
)
def test_a_verb_that_makes_no_sense_is_a_conflict(
    api: Client, root: StorageRoot, now: datetime, state: str, verb: str
) -> None:
    job = a_job(root, now, state=state)
    response = send(api, f"{URL}/{job.pk}/{verb}", {})
    assert (response.status_code, response.json()["code"]) == (409, "state_conflict")


@pytest.mark.parametrize("verb", ["", "/cancel", "/retry", "/dismiss"])
def test_what_is_not_there_is_not_found(api: Client, verb: str) -> None:
    path = f"{URL}/{uuid4()}{verb}"
    assert (send(api, path, {}) if verb else api.get(path)).status_code == 404


@pytest.mark.parametrize(
    ("group", "read", "act"), [(OPERATORS, 200, 201), (AUDITORS, 200, 403), (None, 403, 403)], ids=str
)
def test_auditors_read_and_operators_act(root: StorageRoot, group: str | None, read: int, act: int) -> None:
    client = at_the_pages(person("ada", group))
    assert client.get(URL).status_code == read
    assert order(client, root).status_code == act


def test_a_stranger_reads_and_does_nothing(stranger: Client, root: StorageRoot, now: datetime) -> None:
    job = a_job(root, now)
    assert stranger.get(URL).status_code == 401
    assert stranger.get(f"{URL}/{job.pk}").status_code == 401
    assert order(stranger, root).status_code == 401
    assert send(stranger, f"{URL}/{job.pk}/cancel", {}).status_code == 401
