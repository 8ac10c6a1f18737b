"""A node's page: each value or the reason why there is none, every flag with its remedy, pictures and history."""

from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from django.db import transaction
from django.test import Client
from msgspec import structs

from agent.wire import Goodbye
from nodes import heartbeats, telemetry
from nodes.audit import record
from nodes.callers import SYSTEM, Refused
from nodes.event_types import EventType
from nodes.models import Heartbeat, Node
from tests.nodes.browsing import instant, page_of, words
from tests.nodes.hearing import Agent, speaker
from tests.nodes.publishing import FAILED, facts, gpu, known, publish, sample, unknown, volume

pytestmark = pytest.mark.django_db


@pytest.fixture
def node(make_node: Callable[..., Node]) -> Node:
    """A node that was heard just now."""
    node = make_node(display_name="server01")
    Agent(node).beat(instant())
    return node


def test_an_unknown_node_is_not_found(mara: Client) -> None:
    assert mara.get(f"/admin/nodes/node/{uuid4()}/change/").status_code == 404
    assert mara.get("/admin/nodes/node/no-uuid/change/").status_code == 404


def test_a_node_without_facts_says_so(mara: Client, node: Node) -> None:
    said = words(mara.get(page_of(node)))
    assert "The agent has not published its facts yet." in said
    assert "No volume was reported yet." in said


def test_the_host_is_told_twice_with_the_source(mara: Client, node: Node) -> None:
    """Field case 57."""
    publish(node, facts(), instant())
    seen = mara.get(page_of(node)).content.decode()
    assert "256 GiB" in seen
    assert "all of it: no limit set" in seen
    assert 'title="permission denied (code 13)"' in seen


def test_a_value_that_could_not_be_read_is_a_dash_with_its_reason(mara: Client, node: Node) -> None:
    """Field case 44: unknown is never 0."""
    now = instant()
    publish(node, facts([gpu(0)]), now)
    telemetry.keep(node.pk, sample(now, power_watts=unknown("denied", 4), temperature_celsius=known(0.0)), now=now)
    seen = mara.get(page_of(node)).content.decode()
    assert '<span class="mf-none" title="permission denied (code 4)">—</span>' in seen
    assert "0 °C" in seen


def test_a_gpu_that_vanished_is_shown_missing(mara: Client, node: Node) -> None:
    now = instant()
    publish(node, facts([gpu(0), gpu(1)]), now - timedelta(minutes=10))
    publish(node, facts([gpu(1)]), now)
    said = words(mara.get(page_of(node)))
    assert "1 accelerator missing" in said
    assert "missing, noticed" in said


def test_mig_instances_follow_their_gpu(mara: Client, node: Node) -> None:
    """Field case 52."""
    child = gpu(7, kind="mig", parent="GPU-0000", index=0, key="MIG-1", uuid=known("MIG-1"))
    publish(node, facts([gpu(0), gpu(1), child]), instant())
    devices = mara.get(page_of(node)).context["accelerators"]
    assert [(device.row.key, device.child) for device in devices] == [
        ("GPU-0000", False),
        ("MIG-1", True),
        ("GPU-0001", False),
    ]


def test_sixteen_gpus_are_all_there(mara: Client, node: Node) -> None:
    """Field case 54."""
    publish(node, facts([gpu(number) for number in range(16)]), instant())
    said = words(mara.get(page_of(node)))
    assert all(f"GPU {number} RTX 4080" in said for number in range(16))


def test_a_failed_gpu_runtime_is_explained(mara: Client, node: Node) -> None:
    publish(node, facts(runtime=FAILED), instant())
    said = words(mara.get(page_of(node)))
    assert "failed: Unknown Error (code 999)" in said
    assert "recreate the agent's container" in said


def test_volumes_show_how_full_they_are(mara: Client, node: Node) -> None:
    publish(node, facts(volumes=[volume("artifacts", 2**39, filesystem=known("fuse.shfs"))]), instant())
    said = words(mara.get(page_of(node)))
    assert "512 GiB free of 2 TiB" in said
    assert "Unraid user share" in said
    assert mara.get(page_of(node)).context["volumes"][0].used_percent == pytest.approx(75)


def test_a_conflict_names_both_addresses(mara: Client, make_node: Callable[..., Node]) -> None:
    """Field case 1."""
    node, now = make_node(), instant()
    first, copy = Agent(node, address="192.0.2.1"), Agent(node, address="192.0.2.2")
    first.beat(now - timedelta(seconds=120))
    copy.beat(now - timedelta(seconds=90))
    with pytest.raises(Refused):
        first.beat(now - timedelta(seconds=10))
    said = words(mara.get(page_of(node)))
    assert "192.0.2.2 is heard, 192.0.2.1 was refused (409" in said
    assert "Stop one of the two agents." in said


def test_a_refused_protocol_says_what_was_said(mara: Client, make_node: Callable[..., Node]) -> None:
    """Field case 25."""
    node = make_node(protocol_refused="9", protocol_refused_at=instant(), refused_code="protocol_unsupported")
    assert "The agent said protocol '9'; this control plane speaks 1" in words(mara.get(page_of(node)))


def test_a_disabled_nodes_page_tells_of_its_refused_contact(mara: Client, make_node: Callable[..., Node]) -> None:
    """Field case 24."""
    node = make_node(
        enabled=False, enabled_reason="fan", refused_code="node_disabled", refused_at=instant() - timedelta(seconds=9)
    )
    said = words(mara.get(page_of(node)))
    assert "Reason: fan" in said
    assert "Last contact refused: node_disabled" in said


def test_a_planned_stop_does_not_read_as_an_outage(mara: Client, node: Node) -> None:
    """Field case 38."""
    boot = Node.objects.get().heartbeat.boot_id
    assert boot is not None
    heartbeats.farewell(Goodbye(boot_id=boot, reason="SIGTERM"), by=speaker(node), now=instant())
    said = words(mara.get(page_of(node)))
    assert "Stopped as planned" in said
    assert "Gone silent" not in said


def test_unverified_tls_is_a_warning(mara: Client, node: Node) -> None:
    """Field case 29."""
    publish(node, facts(tls_verify=False), instant())
    assert "TLS is not verified" in words(mara.get(page_of(node)))


@pytest.mark.parametrize(("address", "warned"), [("127.0.0.1", False), ("192.0.2.7", True)])
def test_plain_http_is_never_called_verified_and_warned_of_from_afar(
    address: str, warned: bool, mara: Client, node: Node
) -> None:
    said = facts()
    publish(node, structs.replace(said, agent=structs.replace(said.agent, ca="none")), instant())
    Node.objects.update(address=address)
    seen = words(mara.get(page_of(node)))
    assert "TLS not used (plain HTTP)" in seen
    assert "verified" not in seen
    assert ("Put a TLS proxy in front" in seen) is warned


@pytest.mark.parametrize(
    ("mount", "container", "told"),
    [
        (True, True, "on a mounted volume"),
        (False, True, "on the container's own disk: lost with it"),
        (False, False, "in a folder of the host's file system"),
    ],
)
def test_where_the_state_lies_is_told_by_what_was_observed(
    mount: bool, container: bool, told: str, mara: Client, node: Node
) -> None:
    said = facts(volumes=[volume("state", is_mount=known(mount))])
    publish(node, structs.replace(said, host=structs.replace(said.host, container=container)), instant())
    seen = words(mara.get(page_of(node)))
    assert f"State {told}" in seen
    assert ("not a mount" in seen) is (container and not mount)


def test_where_the_state_lies_is_not_guessed(mara: Client, node: Node) -> None:
    publish(node, facts(volumes=[volume("state", is_mount=unknown("denied", 13))]), instant())
    assert "State — " in words(mara.get(page_of(node)))


def test_a_skew_that_rounds_to_nothing_has_no_sign(mara: Client, node: Node) -> None:
    Heartbeat.objects.update(clock_skew_seconds=-0.01)
    assert "Clock skew 0.0 s" in words(mara.get(page_of(node)))


def test_a_retired_node_is_shown_retired_and_gives_no_orders(mara: Client, make_node: Callable[..., Node]) -> None:
    now = instant()
    troubled = {
        "identity_conflict_at": now,
        "identity_conflict": {},
        "credential_state": "rotating",
        "rotation_ends_at": now + timedelta(days=1),
        "lab_eligible": True,
    }
    node = make_node(**troubled)
    assert {flag.key for flag in mara.get(page_of(node)).context["flags"]} >= {"conflict", "rotation"}
    Node.objects.update(retired_at=now)
    response = mara.get(page_of(node))
    assert [flag.key for flag in response.context["flags"]] == ["retired"]
    said = words(response)
    assert "Eligible for" not in said
    assert "Old one dies" not in said
    assert "Clear" not in said


def test_pictures_are_drawn_and_a_silence_breaks_their_lines(mara: Client, node: Node) -> None:
    now = instant()
    publish(node, facts([gpu(0)]), now)
    for minutes in (50, 49, 48, 20, 19, 18):
        at = now - timedelta(minutes=minutes)
        telemetry.keep(node.pk, sample(at), now=at)
    pictures = {picture.title: picture for picture in mara.get(page_of(node)).context["pictures"]}
    path = pictures["GPU utilisation"].strokes[0].path
    assert path.count("M") == 2
    assert pictures["Processor load"].strokes[0].last == "50 %"


def test_a_span_without_samples_says_so(mara: Client, node: Node) -> None:
    publish(node, facts([gpu(0)]), instant())
    assert "Nothing was measured in this time." in words(mara.get(page_of(node) + "?span=24h"))


def test_a_made_up_span_shows_the_hour(mara: Client, node: Node) -> None:
    assert "Last 1 hour" in words(mara.get(page_of(node) + "?span=999y"))


def test_the_history_shows_the_newest_fifty_and_leads_to_all(mara: Client, node: Node, now: datetime) -> None:
    with transaction.atomic():
        for number in range(60):
            record(EventType.HOSTNAME_CHANGED, by=SYSTEM, about=node, at=now, old=str(number), new=str(number + 1))
    response = mara.get(page_of(node))
    assert len(response.context["events"]) == 50
    assert f"/admin/nodes/auditevent/?node={node.pk}" in response.content.decode()


def test_a_refused_code_of_another_release_breaks_nothing(mara: Client, make_node: Callable[..., Node]) -> None:
    node = make_node(refused_code="from_the_future", refused_at=instant())
    assert "from_the_future" in words(mara.get(page_of(node)))
