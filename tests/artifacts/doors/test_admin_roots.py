"""The pages of storage roots: what was proven and when, and the fault with its remedy."""

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from artifacts.admin.root_verbs import verb
from artifacts.admin.subjects import page_of
from artifacts.models import StorageRoot
from nodes.models import Node
from tests.artifacts.ordering import a_server
from tests.artifacts.showing import GIB, TIB, a_job, a_root, an_artifact, progressed
from tests.nodes import browsing
from tests.nodes.browsing import words

pytestmark = pytest.mark.django_db
LIST = "/admin/artifacts/storageroot/"
ADD = f"{LIST}add/"
FORM = {
    "container_path": "/data/artifacts/models",
    "host_path": "/mnt/cache/models",
    "purpose": "artifacts",
    "reserve": "10 %",
    "ceiling": "2 TiB",
}


@pytest.fixture
def node() -> Node:
    """A server whose agent told its artifact volume."""
    return a_server()


def test_an_empty_list_offers_to_register(mara: Client) -> None:
    response = mara.get(LIST)
    assert "No storage root yet." in words(response)
    assert ADD in response.content.decode()


def test_the_list_tells_paths_room_and_the_last_proof(mara: Client, node: Node, now: datetime) -> None:
    root = a_root(node, now, ceiling_bytes=TIB)
    an_artifact(root, now, bytes=7 * GIB)
    said = words(mara.get(LIST))
    for told in ("/data/artifacts/models", "host: /mnt/cache/appdata/agent/artifacts/models", "verified", "server01"):
        assert told in said
    for told in ("1 TiB free of 2 TiB", "5 % · 102 GiB", "ceiling 1 TiB", "7 GiB 1 artifact", "1 min ago"):
        assert told in said


def test_a_fault_is_told_in_the_list(mara: Client, node: Node, now: datetime) -> None:
    """Field case 60."""
    a_root(node, now, state="unverified", fault="fuse")
    assert "unverified A FUSE share" in words(mara.get(LIST))


def test_what_nobody_measured_is_a_dash(mara: Client, node: Node, now: datetime) -> None:
    a_root(node, now, state="pending", total_bytes=None, free_bytes=None, proven_at=None, looked_at=None)
    said = words(mara.get(LIST))
    assert "pending server01 — 5 % — never" in said
    assert " 0 B" not in said


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {"alpha", "bravo", "delta"}),
        ("?state=unverified", {"bravo"}),
        ("?state=retired", {"gone"}),
        ("?node=tower", {"delta"}),
        ("?q=alph", {"alpha"}),
    ],
)
def test_a_filter_narrows(mara: Client, node: Node, now: datetime, query: str, found: set[str]) -> None:
    a_root(node, now, "alpha")
    a_root(node, now, "bravo", state="unverified", fault="missing")
    a_root(node, now, "gone", state="retired", retired_at=now)
    a_root(a_server("tower"), now, "delta")
    said = words(mara.get(LIST + query))
    assert {name for name in ("alpha", "bravo", "gone", "delta") if f"/data/artifacts/{name}" in said} == found


def test_a_filter_that_is_none_lists_nothing(mara: Client, node: Node, now: datetime) -> None:
    a_root(node, now)
    said = words(mara.get(f"{LIST}?state=good"))
    assert "Nothing is listed" in said
    assert "/data/artifacts/models" not in said


@pytest.mark.parametrize("count", [2, 20])
def test_the_list_costs_the_same_for_two_and_for_twenty(mara: Client, now: datetime, count: int) -> None:
    for number in range(count):
        root = a_root(a_server(f"server{number:02}"), now)
        an_artifact(root, now)
        a_job(root, now)
    with CaptureQueriesContext(connection) as queries:
        mara.get(LIST)
    assert len(queries) <= 7, [query["sql"] for query in queries]


def test_the_page_says_when_it_was_proven_and_what_may_be_written(mara: Client, node: Node, now: datetime) -> None:
    root = a_root(node, now)
    a_job(root, now, state="running", repo_id="org/coming", **progressed(now, 0.25, 40 * GIB))
    an_artifact(root, now, repo_id="org/there")
    said = words(mara.get(page_of(root)))
    for told in ("Proven 1 min ago", "Approved 2 d ago", "File system ext4", "Device 8:1", "Measured 1 min ago"):
        assert told in said
    for told in ("Free 1 TiB of 2 TiB", "Reserved by jobs 30 GiB", "Ceiling none", "Room for more 892 GiB"):
        assert told in said
    assert "org/coming" in said
    assert "org/there" in said


def test_the_page_of_an_unverified_root_says_what_to_do_and_since_when(mara: Client, node: Node, now: datetime) -> None:
    """Field case 59."""
    long_ago = now - timedelta(hours=7)
    root = a_root(
        node, now, state="unverified", fault="marker_missing", fault_detail="The folder is empty.", proven_at=long_ago
    )
    response = mara.get(page_of(root))
    said = words(response)
    assert "The marker is gone Seen 1 min ago. The folder is empty. No job runs here." in said
    assert "mount it, and the root is verified by itself" in said
    assert "Proven 7 h" in said
    assert "Measured 7 h" in said  # what the fault hides was measured then
    assert "/admin/artifacts/job/add/?root=" not in response.content.decode()


def test_a_ceiling_alone_is_no_room(mara: Client, node: Node, now: datetime) -> None:
    """Nobody has measured the disk yet."""
    unmeasured: dict[str, Any] = {"total_bytes": None, "free_bytes": None, "proven_at": None, "looked_at": None}
    root = a_root(node, now, state="pending", ceiling_bytes=GIB, **unmeasured)
    said = words(mara.get(page_of(root)))
    assert "Ceiling 1 GiB Room for more —" in said


def test_a_pending_root_of_a_silent_node_says_that_too(mara: Client, node: Node, now: datetime) -> None:
    root = a_root(node, now, state="pending")
    assert "server01 was last heard" in words(mara.get(page_of(root)))


def test_the_history_of_a_root_is_its_own(mara: Client, node: Node, now: datetime) -> None:
    mara.post(ADD, FORM | {"node": str(node.pk)})
    mara.post(ADD, FORM | {"node": str(node.pk), "container_path": "/data/artifacts/b", "host_path": "/mnt/b"})
    root = StorageRoot.objects.get(container_path="/data/artifacts/b")
    shown = mara.get(page_of(root)).context["events"]
    assert [(event.type, event.about_id) for event in shown] == [("storage_root.registered", str(root.pk))]


def test_a_retired_root_has_no_verbs(mara: Client, node: Node, now: datetime) -> None:
    root = a_root(node, now, state="retired", retired_at=now)
    response = mara.get(page_of(root))
    assert response.context["verbs"] == []
    assert "No job runs here any more." in words(response)


def test_an_auditor_reads_and_is_offered_nothing(node: Node, now: datetime) -> None:
    root, audrey = a_root(node, now), browsing.an_auditor()
    assert audrey.get(LIST).context["add"] is None
    page = audrey.get(page_of(root))
    assert (page.context["verbs"], page.context["order_url"]) == ([], "")
    for path in (ADD, verb(root, "edit"), verb(root, "approve"), verb(root, "retire")):
        assert audrey.get(path).status_code == 403
        assert audrey.post(path, {"reason": "x"}).status_code == 403


def test_an_outsider_sees_nothing(node: Node, now: datetime) -> None:
    root, otto = a_root(node, now), browsing.an_outsider()
    assert otto.get(LIST).status_code == 403
    assert otto.get(page_of(root)).status_code == 403


@pytest.mark.parametrize("key", [str(uuid4()), "no-uuid"], ids=["unknown", "no-uuid"])
def test_a_root_that_is_none_is_not_found(mara: Client, key: str) -> None:
    assert mara.get(f"{LIST}{key}/change/").status_code == 404


def test_names_are_shown_as_text(mara: Client, node: Node, now: datetime) -> None:
    root = a_root(node, now, host_path="/mnt/<script>alert(1)</script>")
    for page in (LIST, page_of(root), verb(root, "edit")):
        assert "<script>alert(1)" not in mara.get(page).content.decode()
