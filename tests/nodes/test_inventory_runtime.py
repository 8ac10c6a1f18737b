"""A GPU runtime that comes, fails and goes, and what the inventory makes of it: nothing that was not observed."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from agent import wire
from nodes.models import Accelerator, Node
from tests.nodes.hearing import START, told
from tests.nodes.publishing import ABSENT, FAILED, READY, facts, gpu, known, publish, unknown
from tests.nodes.test_inventory import LATER, details, missing

pytestmark = pytest.mark.django_db


@pytest.fixture
def node(make_node: Callable[..., Node]) -> Node:
    """A node that was never heard and published nothing."""
    return make_node(display_name="server01")


@pytest.mark.parametrize("lost", [FAILED, ABSENT], ids=["failed", "absent"])
def test_a_runtime_that_is_lost_wipes_no_inventory(node: Node, lost: wire.GpuRuntime) -> None:
    """Field case 47: nothing was observed about the GPUs, so nothing is told about them."""
    publish(node, facts([gpu(0), gpu(1)]), START)
    publish(node, facts([], runtime=lost), LATER)

    assert missing(node) == []
    assert set(Accelerator.objects.filter(node=node).values_list("last_seen_at", flat=True)) == {START}
    assert told() == ["accelerator.found", "node.gpu_runtime_changed"]


def test_a_runtime_that_works_and_shows_no_gpu_does_miss_them(node: Node) -> None:
    publish(node, facts([gpu(0), gpu(1)]), START)
    publish(node, facts([], runtime=READY), LATER)

    assert missing(node) == ["GPU-0000", "GPU-0001"]


def test_a_runtime_s_failure_and_recovery_are_told_with_code_and_message(node: Node) -> None:
    publish(node, facts([gpu(0)]), START)
    publish(node, facts([], runtime=FAILED), LATER)
    publish(node, facts([gpu(0)]), LATER + timedelta(minutes=1))

    fell, rose = details("node.gpu_runtime_changed")
    assert (fell["old"], fell["new"], fell["code"], fell["message"]) == ("ready", "failed", 999, "Unknown Error")
    assert (rose["old"], rose["new"]) == ("failed", "ready")
    assert told("accelerator.missing", "accelerator.returned") == []


def test_a_runtime_that_fails_otherwise_is_told_again(node: Node) -> None:
    publish(node, facts([], runtime=FAILED), START)
    publish(node, facts([], runtime=wire.GpuRuntime(state="failed", code=18, message="Mismatch")), LATER)

    assert [event.get("code") for event in details("node.gpu_runtime_changed")] == [999, 18]


def test_a_server_without_gpu_is_no_event(node: Node) -> None:
    """Field case 56."""
    publish(node, facts([], runtime=ABSENT), START)
    assert told() == []


def test_a_driver_s_upgrade_is_told(node: Node) -> None:
    publish(node, facts([gpu(0)]), START)
    newer = wire.GpuRuntime(state="ready", driver_version=known("590.10"), cuda_version=known("13.0"))
    publish(node, facts([gpu(0)], runtime=newer), LATER)

    [event] = details("node.gpu_runtime_changed")
    assert (event["old_driver"], event["new_driver"]) == ("580.65", "590.10")


def test_a_gpu_that_fell_off_the_bus_keeps_the_name_by_which_people_know_it(node: Node) -> None:
    """Field case 45: it is still listed, every reading lost, beside the ones that work."""
    publish(node, facts([gpu(0), gpu(1)]), START)
    before = {device.key: (device.model, device.memory_bytes) for device in Accelerator.objects.filter(node=node)}
    fallen = gpu(1, model=unknown("lost", 15), memory_bytes=unknown("lost", 15), uuid=unknown("lost", 15))
    publish(node, facts([gpu(0), fallen]), LATER)
    after = {device.key: (device.model, device.memory_bytes) for device in Accelerator.objects.filter(node=node)}
    assert after == before
    assert Accelerator.objects.get(node=node, key=fallen.key).facts["model"] == {"reason": "lost", "code": 15}
