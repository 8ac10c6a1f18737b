"""The page on which a model is ordered."""

from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from artifacts.admin.subjects import page_of
from artifacts.models import Job, StorageRoot
from nodes.models import Node
from tests.artifacts.ordering import a_server
from tests.artifacts.showing import a_job, a_root
from tests.nodes.browsing import words

pytestmark = pytest.mark.django_db
LIST = "/admin/artifacts/job/"
ADD = f"{LIST}add/"


def test_an_order_leads_to_its_job_and_the_second_joins_it(mara: Client, root: StorageRoot) -> None:
    form = {"root": str(root.pk), "repo_id": "org/model", "revision": "main", "allow_patterns": "*.json\n\n *.txt "}
    first, again = mara.post(ADD, form), mara.post(ADD, form, follow=True)
    job = Job.objects.get()
    assert first["Location"] == page_of(job)
    assert "org/model is under way already: this is that job." in words(again)
    assert (job.allow_patterns, job.created_by) == (["*.json", "*.txt"], "mara")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"repo_id": "../x"}, "repo_id"),
        ({"repo_id": ""}, "repo_id"),
        ({"revision": "a b"}, "revision"),
        ({"root": ""}, "root"),
        ({"root": str(uuid4())}, "root"),
        ({"allow_formats": ["pickle"]}, "reason"),
        ({"ignore_patterns": "x" * 600}, "ignore_patterns"),
    ],
    ids=["dots", "empty", "blank", "no-root", "unknown-root", "no-reason", "long-pattern"],
)
def test_a_fault_stands_at_its_field(mara: Client, root: StorageRoot, fields: dict[str, Any], field: str) -> None:
    form = {"root": str(root.pk), "repo_id": "org/model", "revision": "main"} | fields
    response = mara.post(ADD, form)
    assert (response.status_code, list(response.context["form"].errors)) == (422, [field])
    assert not Job.objects.exists()


def test_a_format_is_let_in_with_a_reason(mara: Client, root: StorageRoot) -> None:
    form = {
        "root": str(root.pk),
        "repo_id": "org/model",
        "revision": "main",
        "allow_formats": ["pickle"],
        "reason": "old",
    }
    assert mara.post(ADD, form).status_code == 302
    assert Job.objects.get().allow_formats == ["pickle"]


def test_only_verified_roots_are_offered_and_the_others_are_counted(
    mara: Client, root: StorageRoot, now: datetime
) -> None:
    a_root(root.node, now, "broken", state="unverified", fault="missing")
    off = a_root(a_server("off"), now, "off")
    Node.objects.filter(pk=off.node_id).update(enabled=False)
    response = mara.get(ADD)
    offered = [key for key, _ in response.context["form"].fields["root"].choices if key]
    assert offered == [str(root.pk)]
    assert "1 storage root is not verified, and not offered." in words(response)


def test_without_a_verified_root_the_form_says_so(mara: Client) -> None:
    assert "There is no verified storage root yet." in words(mara.get(ADD))


def test_an_earlier_order_is_given_once_more(mara: Client, root: StorageRoot, now: datetime) -> None:
    job = a_job(root, now, state="succeeded", preflight_only=True, revision="v2", ignore_patterns=["*.bin"])
    initial = mara.get(f"{ADD}?again={job.pk}").context["form"].initial
    assert (initial["root"], initial["repo_id"], initial["revision"]) == (str(root.pk), "org/model", "v2")
    assert initial["ignore_patterns"] == ["*.bin"]
    assert "preflight_only" not in initial  # this time for good


@pytest.mark.parametrize("asked", ["nonsense", str(uuid4())], ids=["nonsense", "unknown"])
def test_an_earlier_order_that_is_none_is_passed_over(mara: Client, asked: str) -> None:
    assert mara.get(f"{ADD}?again={asked}").status_code == 200
