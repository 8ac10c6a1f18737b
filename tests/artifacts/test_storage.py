"""Registering a storage root, and what is refused."""

import random
from string import ascii_letters
from typing import Any

import pytest

from agent import wire
from agent.protocol import Code
from artifacts import storage
from artifacts.models import StorageRoot
from nodes import control
from nodes.audit import events
from nodes.callers import Caller
from nodes.models import Node, Volume
from tests.artifacts.ordering import GIB, OPERATOR, ROOT, a_server
from tests.artifacts.refusals import fields, refused
from tests.nodes.hearing import START, told

pytestmark = pytest.mark.django_db


@pytest.fixture
def node() -> Node:
    """A server whose agent told its volumes."""
    return a_server()


def register(node: Node, by: Caller = OPERATOR, **said: Any) -> StorageRoot:
    """Register the usual folder, or as told."""
    usual = {"host_path": "/mnt/cache/appdata/models", "container_path": ROOT}
    return storage.register(node, **usual | said, by=by, now=START)


def test_a_new_root_waits_for_its_agent_to_prove_it(node: Node) -> None:
    root = register(node)
    assert (root.state, root.approve, root.reserve_percent, root.reserve_bytes) == ("pending", True, 5.0, None)
    assert told() == ["storage_root.registered"]
    node.refresh_from_db()
    assert node.work_waits


def test_its_registration_tells_both_paths_and_the_limits(node: Node) -> None:
    register(node, reserve_bytes=GIB, ceiling_bytes=9 * GIB, purpose=" models ")
    event = events().get()
    assert (event.about_kind, event.about_label, event.node_id) == ("storage_root", ROOT, node.pk)
    assert event.details == {
        "host_path": "/mnt/cache/appdata/models",
        "container_path": ROOT,
        "purpose": "models",
        "reserve_bytes": GIB,
        "reserve_percent": None,
        "ceiling_bytes": 9 * GIB,
    }


UNFIT = {
    "the root": "/",
    "nothing": "",
    "relative": "data/artifacts/x",
    "parent": "/data/artifacts/../x",
    "dot": "/data/artifacts/./x",
    "double slash": "/data/artifacts//x",
    "two slashes first": "//data/artifacts/x",
    "trailing slash": "/data/artifacts/x/",
    "newline": "/data/artifacts/x\ny",
    "nul": "/data/artifacts/x\x00",
    "turned text": "/data/artifacts/x\u202ey",
    "long name": "/data/artifacts/" + "x" * 256,
    "long path": "/data/artifacts" + "/xy" * 1400,
    "windows": "C:\\data\\artifacts",
    "a number": 7,
}


@pytest.mark.parametrize("field", ["host_path", "container_path"])
@pytest.mark.parametrize("path", UNFIT.values(), ids=UNFIT.keys())
def test_a_path_that_is_not_absolute_and_plain_is_refused(node: Node, path: Any, field: str) -> None:
    assert fields(refused(lambda: register(node, **{field: path}))) == [field]
    assert told() == []


def test_a_path_leaves_room_for_the_paths_below_it_and_for_the_databases_index(node: Node) -> None:
    letters = random.Random(1)
    longest = "/data/artifacts/" + "/".join("".join(letters.choices(ascii_letters, k=251)) for _ in range(4))
    assert len(longest) == 1023
    refusal = refused(lambda: register(node, container_path=longest + "xy"))
    assert fields(refusal) == ["container_path"]
    assert register(node, container_path=longest + "x").container_path == longest + "x"


def test_a_path_is_refused_with_its_plain_form(node: Node) -> None:
    assert "/data/artifacts/x" in refused(lambda: register(node, container_path="/data/artifacts/x/")).detail


@pytest.mark.parametrize(
    "path", ["/data/artifacts", "/data", "/data/artifacts-2/models", "/data/hf-cache/models"], ids=str
)
def test_a_folder_outside_the_agents_artifact_volume_is_refused(node: Node, path: str) -> None:
    refusal = refused(lambda: register(node, container_path=path))
    assert fields(refusal) == ["container_path"]
    assert "/data/artifacts" in refusal.detail


@pytest.mark.parametrize("filesystem", ["fuse.shfs", "fuse.mergerfs", "fuse", "fuseblk"])
def test_a_fuse_share_is_refused_with_the_way_round_it(filesystem: str) -> None:
    """Field case 60."""
    refusal = refused(lambda: register(a_server(filesystem=filesystem)))
    assert fields(refusal) == ["container_path"]
    assert filesystem in refusal.detail
    assert "/mnt/cache" in refusal.detail


@pytest.mark.parametrize("path", ["/mnt/user", "/mnt/user/models", "/mnt/user0/models"])
def test_unraids_user_share_is_refused_as_a_host_path(node: Node, path: str) -> None:
    """Field case 60."""
    refusal = refused(lambda: register(node, host_path=path))
    assert fields(refusal) == ["host_path"]
    assert "/mnt/cache" in refusal.detail


def test_a_folder_that_is_only_called_like_the_user_share_is_none(node: Node) -> None:
    assert register(node, host_path="/mnt/users/models").state == "pending"


@pytest.mark.parametrize(
    ("path", "how"),
    [(ROOT, "is the same folder as"), (f"{ROOT}/large", "lies in"), ("/data/artifacts/a", "contains")],
    ids=["the same", "below", "above"],
)
def test_roots_that_overlap_are_refused(node: Node, path: str, how: str) -> None:
    register(node, container_path=ROOT)
    register(node, container_path="/data/artifacts/a/b", host_path="/mnt/disk1/b")
    refusal = refused(lambda: register(node, container_path=path, host_path="/mnt/disk2/c"))
    assert fields(refusal) == ["container_path"]
    assert how in refusal.detail


def test_two_names_of_one_host_folder_are_refused(node: Node) -> None:
    register(node)
    refusal = refused(lambda: register(node, container_path="/data/artifacts/other"))
    assert fields(refusal) == ["host_path"]


def test_a_folder_beside_another_with_a_longer_name_is_no_overlap(node: Node) -> None:
    register(node)
    register(node, container_path=ROOT + "-2", host_path="/mnt/cache/appdata/models-2")
    assert StorageRoot.objects.count() == 2


def test_the_folder_of_a_retired_root_may_be_registered_again(node: Node) -> None:
    storage.retire(register(node), reason="disk replaced", by=OPERATOR, now=START)
    assert register(node).state == "pending"


def test_another_node_has_its_own_folders(node: Node) -> None:
    register(node)
    assert register(a_server("server02")).state == "pending"


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ({"reserve_bytes": 1, "reserve_percent": 5}, "reserve_percent"),
        ({"reserve_bytes": -1}, "reserve_bytes"),
        ({"reserve_bytes": True}, "reserve_bytes"),
        ({"reserve_bytes": 1.5}, "reserve_bytes"),
        ({"reserve_bytes": 2**63}, "reserve_bytes"),
        ({"reserve_percent": 95.1}, "reserve_percent"),
        ({"reserve_percent": -1}, "reserve_percent"),
        ({"reserve_percent": float("nan")}, "reserve_percent"),
        ({"reserve_percent": "5"}, "reserve_percent"),
        ({"ceiling_bytes": 0}, "ceiling_bytes"),
        ({"ceiling_bytes": 2**63}, "ceiling_bytes"),
        ({"purpose": ""}, "purpose"),
        ({"purpose": "x" * 65}, "purpose"),
    ],
    ids=str,
)
def test_a_limit_out_of_bounds_is_refused_by_its_name(node: Node, limits: dict[str, Any], field: str) -> None:
    assert fields(refused(lambda: register(node, **limits))) == [field]


@pytest.mark.parametrize(
    "limits",
    [{"reserve_bytes": 0}, {"reserve_percent": 0}, {"reserve_percent": 95}, {"ceiling_bytes": 1}],
    ids=str,
)
def test_a_limit_at_its_bound_stands(node: Node, limits: dict[str, Any]) -> None:
    root = register(node, **limits)
    assert {name: getattr(root, name) for name in limits} == limits


def test_every_fault_is_told_at_once(node: Node) -> None:
    refusal = refused(lambda: register(node, host_path="x", container_path="y", purpose=""))
    assert fields(refusal) == ["host_path", "container_path", "purpose"]


def test_a_node_that_has_not_told_its_volumes_is_not_guessed_at(node: Node) -> None:
    Volume.objects.filter(node=node).delete()
    Node.objects.filter(pk=node.pk).update(facts_at=None)
    assert "not told its volumes yet" in refused(lambda: register(node), Code.STATE_CONFLICT).detail


def test_a_node_without_a_volume_for_artifacts_is_told_apart(node: Node) -> None:
    Volume.objects.filter(node=node).update(name="state")
    assert "names no volume for artifacts" in refused(lambda: register(node), Code.STATE_CONFLICT).detail


@pytest.mark.parametrize("verb", [control.disable, control.retire], ids=["disabled", "retired"])
def test_a_node_out_of_service_gets_no_root(node: Node, verb: Any) -> None:
    verb(node, reason="sold", by=OPERATOR, now=START)
    refused(lambda: register(node), Code.STATE_CONFLICT)


def test_a_node_has_at_most_as_many_roots_as_one_claim_tells(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_ROOTS", 1)
    register(node)
    other: dict[str, Any] = {"container_path": "/data/artifacts/b", "host_path": "/mnt/disk1/b"}
    refused(lambda: register(node, **other), Code.STATE_CONFLICT)


def test_an_auditor_registers_nothing(node: Node, auditor: Caller) -> None:
    refused(lambda: register(node, by=auditor), Code.FORBIDDEN)
