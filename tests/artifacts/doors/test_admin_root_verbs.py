"""The forms about storage roots: register, edit, approve again, retire."""

from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from artifacts.admin.root_verbs import verb
from artifacts.admin.subjects import page_of
from artifacts.models import StorageRoot
from nodes.audit import events
from nodes.models import Node
from tests.artifacts.ordering import a_server
from tests.artifacts.showing import GIB, TIB, a_job, a_root
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


def faults(response: Any) -> dict[str, list[str]]:
    """The errors of the form that a page shows, by field."""
    return {name: [str(error) for error in errors] for name, errors in response.context["form"].errors.items()}


def test_the_form_shows_the_volume_that_the_node_told(mara: Client, node: Node) -> None:
    response = mara.get(f"{ADD}?node={node.pk}")
    assert response.context["form"].initial == {"node": str(node.pk), "container_path": "/data/artifacts/models"}
    assert "/data/artifacts ext4" in words(response)


@pytest.mark.parametrize("asked", ["nonsense", str(uuid4())], ids=["nonsense", "unknown"])
def test_a_node_that_is_none_is_not_chosen(mara: Client, asked: str) -> None:
    response = mara.get(f"{ADD}?node={asked}")
    assert (response.status_code, response.context["form"].initial) == (200, {})


def test_registering_leads_to_the_roots_page(mara: Client, node: Node) -> None:
    response = mara.post(ADD, FORM | {"node": str(node.pk)})
    root = StorageRoot.objects.get()
    assert (response.status_code, response["Location"]) == (302, page_of(root))
    assert (root.reserve_percent, root.reserve_bytes, root.ceiling_bytes) == (10.0, None, 2 * TIB)
    event = events().get()
    assert (event.type, event.actor_label) == ("storage_root.registered", "mara")


@pytest.mark.parametrize(
    ("fields", "field", "fault"),
    [
        ({"container_path": "/"}, "container_path", "root of the file system"),
        ({"container_path": "/elsewhere/x"}, "container_path", "below the agent's artifact volume"),
        ({"container_path": "/data/artifacts/../x"}, "container_path", "without '..'"),
        ({"host_path": "/mnt/user/models"}, "host_path", "user share"),
        ({"reserve": "plenty"}, "reserve", "50 GiB"),
        ({"reserve": "99 %"}, "reserve", "from 0 to 95"),
        ({"ceiling": "0 B"}, "ceiling", "from 1 to"),
        ({"node": ""}, "node", "required"),
        ({"purpose": "a\x01"}, "purpose", "control"),
    ],
    ids=["slash", "outside", "dots", "fuse", "words", "percent", "ceiling", "no-node", "control"],
)
def test_a_fault_stands_at_its_field(mara: Client, node: Node, fields: dict[str, str], field: str, fault: str) -> None:
    response = mara.post(ADD, FORM | {"node": str(node.pk)} | fields)
    assert response.status_code == 422
    assert list(faults(response)) == [field]
    assert fault in faults(response)[field][0]
    assert not StorageRoot.objects.exists()


def test_an_empty_reserve_is_five_percent(mara: Client, node: Node) -> None:
    mara.post(ADD, FORM | {"node": str(node.pk), "reserve": "", "ceiling": ""})
    root = StorageRoot.objects.get()
    assert (root.reserve_percent, root.ceiling_bytes) == (5.0, None)


def test_the_edit_form_gives_back_what_was_given(mara: Client, node: Node, now: datetime) -> None:
    root = a_root(node, now, reserve_percent=None, reserve_bytes=50 * GIB, ceiling_bytes=2 * TIB)
    form = mara.get(verb(root, "edit")).context["form"]
    assert (form["reserve"].value(), form["ceiling"].value()) == ("50 GiB", "2 TiB")
    said = {"host_path": root.host_path, "purpose": "lab", "reserve": "7.5 %", "ceiling": "", "version": "1"}
    assert mara.post(verb(root, "edit"), said).status_code == 302
    root.refresh_from_db()
    assert (root.purpose, root.reserve_percent, root.reserve_bytes, root.ceiling_bytes) == ("lab", 7.5, None, None)


def test_an_edit_of_an_older_version_is_refused(mara: Client, node: Node, now: datetime) -> None:
    root = a_root(node, now, version=3)
    said = {"host_path": root.host_path, "purpose": "lab", "reserve": "5 %", "ceiling": "", "version": "2"}
    response = mara.post(verb(root, "edit"), said)
    assert response.status_code == 422
    assert "somebody changed it meanwhile" in words(response)


@pytest.mark.parametrize(("name", "state"), [("approve", "pending"), ("retire", "retired")])
def test_a_verb_asks_why(mara: Client, node: Node, now: datetime, name: str, state: str) -> None:
    root = a_root(node, now)
    assert mara.post(verb(root, name), {"reason": " "}).status_code == 422
    response = mara.post(verb(root, name), {"reason": "new disk"})
    root.refresh_from_db()
    assert (response.status_code, response["Location"], root.state) == (302, page_of(root), state)


def test_a_refusal_is_told_on_the_form(mara: Client, node: Node, now: datetime) -> None:
    root = a_root(node, now)
    a_job(root, now, state="running")
    response = mara.post(verb(root, "retire"), {"reason": "x"})
    assert response.status_code == 422
    assert "Cancel it, or wait until it has ended." in words(response)
