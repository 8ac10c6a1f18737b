"""What a node consists of: publications, what they change, and what the history tells of it."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent import wire
from agent.protocol import Code
from nodes import control, inventory
from nodes.audit import events
from nodes.callers import Caller, Refused
from nodes.models import Accelerator, Node, Volume
from tests.nodes.hearing import START, Agent, speaker, told
from tests.nodes.publishing import facts, gpu, publish, unknown, volume

pytestmark = pytest.mark.django_db
LATER = START + timedelta(minutes=5)


@pytest.fixture
def node(make_node: Callable[..., Node]) -> Node:
    """A node that was never heard and published nothing."""
    return make_node(display_name="server01")


def missing(node: Node) -> list[str]:
    """The keys of its missing accelerators."""
    return sorted(Accelerator.objects.filter(node=node, missing_since__isnull=False).values_list("key", flat=True))


def details(event_type: str) -> list[dict[str, Any]]:
    """What the history says in events of a type, oldest first."""
    return [event.details for event in events().filter(type=event_type).order_by("position")]


def test_the_first_publication_is_stored_and_told_as_one_look(node: Node) -> None:
    said = facts([gpu(n) for n in range(8)], volumes=[volume("state"), volume("artifacts")])
    reply = publish(node, said, START)

    node.refresh_from_db()
    assert (reply.changed, reply.facts_digest) == (True, wire.digest(said))
    assert (node.facts_digest, node.facts_at, node.want_facts) == (wire.digest(said), START, False)
    assert (node.facts or {})["host"]["memory_limit_bytes"] == {"reason": "denied", "code": 13}
    assert Accelerator.objects.filter(node=node, missing_since=None).count() == 8
    assert list(Volume.objects.filter(node=node).values_list("name", flat=True)) == ["artifacts", "state"]
    assert details("accelerator.found") == [{"first_look": True, "count": 8, "models": {"NVIDIA GeForce RTX 4080": 8}}]


def test_facts_that_say_nothing_new_leave_no_trace_in_the_history(node: Node) -> None:
    publish(node, facts([gpu(0)], volumes=[volume("state", free=100)]), START)
    Node.objects.filter(pk=node.pk).update(want_facts=True)
    before = events().count()
    reply = publish(node, facts([gpu(0)], volumes=[volume("state", free=50)], at=LATER), LATER)

    node.refresh_from_db()
    assert not reply.changed
    assert events().count() == before
    assert (node.want_facts, node.facts_at) == (False, LATER)
    assert Accelerator.objects.get(node=node).last_seen_at == LATER
    assert Volume.objects.get(node=node).free_bytes == 50


def test_a_gpu_that_vanished_is_told_and_stays_in_the_inventory_as_missing(node: Node) -> None:
    """Field case 46."""
    publish(node, facts([gpu(n) for n in range(4)]), START)
    publish(node, facts([gpu(n) for n in (0, 1, 3)]), LATER)

    gone = Accelerator.objects.get(node=node, key="GPU-0002")
    assert missing(node) == ["GPU-0002"]
    assert (gone.missing_since, gone.last_seen_at) == (LATER, START)
    [event] = details("accelerator.missing")
    assert (event["key"], event["index"], event["last_seen_at"]) == ("GPU-0002", 2, START.isoformat())


def test_a_gpu_that_stays_away_is_told_once(node: Node) -> None:
    publish(node, facts([gpu(0), gpu(1)]), START)
    publish(node, facts([gpu(0)]), LATER)
    publish(node, facts([gpu(0)], hostname="renamed"), LATER + timedelta(minutes=1))

    assert len(details("accelerator.missing")) == 1
    assert Accelerator.objects.get(node=node, key="GPU-0001").missing_since == LATER


def test_a_gpu_that_comes_back_is_the_same_one(node: Node) -> None:
    publish(node, facts([gpu(0), gpu(1)]), START)
    publish(node, facts([gpu(0)]), LATER)
    publish(node, facts([gpu(0), gpu(1)]), LATER + timedelta(minutes=1))

    assert missing(node) == []
    assert Accelerator.objects.get(node=node, key="GPU-0001").first_seen_at == START
    [event] = details("accelerator.returned")
    assert (event["key"], event["missing_since"]) == ("GPU-0001", LATER.isoformat())


def test_a_gpu_that_is_new_after_the_first_look_is_told_by_name(node: Node) -> None:
    publish(node, facts([gpu(0)]), START)
    publish(node, facts([gpu(0), gpu(1)]), LATER)

    assert details("accelerator.found")[1] == {
        "key": "GPU-0001",
        "index": 1,
        "model": "NVIDIA GeForce RTX 4080",
        "pci_bus_id": "0000:01:00.0",
    }


def test_a_gpu_that_moved_to_another_index_is_no_news(node: Node) -> None:
    publish(node, facts([gpu(0), gpu(1)]), START)
    publish(node, facts([gpu(0, index=1), gpu(1, index=0)]), LATER)

    assert told() == ["accelerator.found"]
    assert Accelerator.objects.get(node=node, key="GPU-0000").index == 1


def test_a_value_that_could_not_be_read_is_kept_as_its_reason_and_never_as_0(node: Node) -> None:
    """Field case 44."""
    odd = gpu(0, memory_bytes=unknown("error", 999), model=unknown("denied", 4), power_limit_watts=unknown("lost", 15))
    publish(node, facts([odd]), START)

    kept = Accelerator.objects.get(node=node)
    assert kept.memory_bytes is None
    assert kept.facts["memory_bytes"] == {"reason": "error", "code": 999}
    assert kept.facts["model"] == {"reason": "denied", "code": 4}
    assert kept.facts["power_limit_watts"] == {"reason": "lost", "code": 15}


def test_an_index_as_large_as_the_wire_allows_is_stored(node: Node) -> None:
    publish(node, facts([gpu(0, index=2**53)]), START)
    assert Accelerator.objects.get(node=node).index == 2**53


def test_another_hostname_is_the_same_node_with_an_event(node: Node) -> None:
    """Field case 17."""
    publish(node, facts(hostname="server01"), START)
    publish(node, facts(hostname="tower"), LATER)

    node.refresh_from_db()
    assert (node.hostname, node.display_name, Node.objects.count()) == ("tower", "server01", 1)
    assert details("node.hostname_changed") == [{"old": "server01", "new": "tower"}]


@pytest.mark.parametrize("name", ["a_b", "ÜBER-Wagen", "<script>alert(1)</script>", "x" * 255])
def test_any_hostname_is_kept_as_it_is(node: Node, name: str) -> None:
    """Field case 15: a label, never a DNS name."""
    publish(node, facts(hostname=name), START)
    node.refresh_from_db()
    assert node.hostname == name


def test_an_agent_that_verifies_no_certificates_is_told_and_so_is_its_mending(node: Node) -> None:
    publish(node, facts(tls_verify=False), START)
    publish(node, facts(tls_verify=False, hostname="renamed"), START + timedelta(seconds=1))
    publish(node, facts(tls_verify=True, hostname="renamed"), LATER)

    assert told("node.tls_unverified", "node.tls_verified") == ["node.tls_unverified", "node.tls_verified"]


def test_a_volume_that_is_named_no_more_is_forgotten(node: Node) -> None:
    publish(node, facts(volumes=[volume("state"), volume("artifacts")]), START)
    publish(node, facts(volumes=[volume("state")]), LATER)
    assert list(Volume.objects.filter(node=node).values_list("name", flat=True)) == ["state"]


@pytest.mark.parametrize(
    ("said", "field"),
    [
        (facts([gpu(0), gpu(1), gpu(1, index=2)]), "accelerators[2].key"),
        (facts(volumes=[volume("state"), volume("state")]), "volumes[1].name"),
    ],
    ids=["accelerators", "volumes"],
)
def test_a_name_that_stands_twice_is_refused_by_its_place(node: Node, said: wire.Facts, field: str) -> None:
    with pytest.raises(Refused) as caught:
        publish(node, said, START)
    assert (caught.value.code, caught.value.errors[0].field) == (Code.INVALID, field)
    assert not Accelerator.objects.exists()


def test_facts_of_a_boot_that_has_not_beaten_yet_are_taken(node: Node) -> None:
    Agent(node).beat(START)
    assert publish(node, facts(boot_id=uuid.uuid4()), LATER).changed


def test_facts_of_a_boot_that_was_superseded_are_refused(node: Node) -> None:
    old, new = Agent(node), Agent(node)
    old.beat(START)
    new.beat(START + timedelta(seconds=5))
    publish(node, facts(boot_id=new.boot_id), LATER)

    with pytest.raises(Refused) as caught:
        publish(node, facts(boot_id=old.boot_id, hostname="copy"), LATER)
    node.refresh_from_db()
    assert (caught.value.code, node.hostname) == (Code.IDENTITY_CONFLICT, "server01")


def test_facts_that_were_under_way_when_the_node_was_disabled_are_refused(node: Node, operator: Caller) -> None:
    """Field case 24: the door saw an enabled node, the lock shows a disabled one."""
    by = speaker(node)
    control.disable(node, reason="maintenance", by=operator, now=START)

    with pytest.raises(Refused) as caught:
        inventory.publish(facts(hostname="changed"), by=by, now=LATER)
    node.refresh_from_db()
    assert (caught.value.code, node.hostname, node.refused_code) == (Code.NODE_DISABLED, "server01", "node_disabled")


def test_sixteen_gpus_of_one_model_are_sixteen(node: Node) -> None:
    """Field case 54."""
    publish(node, facts([gpu(n) for n in range(16)]), START)
    assert Accelerator.objects.filter(node=node).count() == 16


def test_facts_that_change_from_one_instant_to_the_next_are_told_to_wait(node: Node) -> None:
    publish(node, facts([gpu(0)]), START)
    with pytest.raises(Refused) as refusal:
        publish(node, facts([gpu(1)]), START + timedelta(milliseconds=100))
    assert refusal.value.code is Code.THROTTLED
    assert publish(node, facts([gpu(1)]), START + timedelta(seconds=1)).changed


def test_many_devices_that_come_and_go_at_once_are_one_event_of_each_kind(node: Node) -> None:
    publish(node, facts([gpu(n) for n in range(100)]), START)
    publish(node, facts([gpu(n) for n in range(100, 200)]), LATER)
    (gone,), (found,) = details("accelerator.missing"), details("accelerator.found")[1:]
    assert (gone["count"], found["count"]) == (100, 100)
    assert len(gone["keys"]) == inventory.NEWS_OF_A_KIND


def test_a_hostname_with_a_line_break_in_it_is_refused_by_name(node: Node) -> None:
    said = facts([gpu(0)])
    odd = msgspec.structs.replace(said, host=msgspec.structs.replace(said.host, hostname="a\nb"))
    with pytest.raises(Refused) as refusal:
        publish(node, odd, START)
    assert refusal.value.errors[0].field == "host.hostname"
