"""What nodes say over the wire: the real messages to the real views, with a credential that was really issued."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from django.test import Client, RequestFactory

from agent import protocol, wire
from modelforge import lane
from nodes import control
from nodes.audit import events
from nodes.callers import Caller
from nodes.models import Accelerator, Heartbeat, Node, TelemetrySample
from tests.nodes.publishing import as_json, facts, gpu, sample, volume

pytestmark = pytest.mark.django_db


@pytest.fixture
def enrolled(enrolled_node: Callable[..., Any]) -> Any:
    """A node that enrolled just now."""
    return enrolled_node(at=datetime.now(UTC))


def send(enrolled: Any, path: str, body: bytes, method: str = "POST") -> Any:
    """The response."""
    client = Client(headers=enrolled.headers)
    return client.generic(method, path, body, content_type="application/json")


def beat(**said: Any) -> bytes:
    """A first beat."""
    first: dict[str, Any] = {"boot_id": uuid4(), "sequence": 1, "sent_at": datetime.now(UTC), "agent_version": "0.1.0"}
    return as_json(wire.Beat(**first | said))


def code(response: Any) -> tuple[int, str]:
    """Status and code of a refusal."""
    return response.status_code, response.json()["code"]


def test_a_beat_is_heard_and_answered(enrolled: Any) -> None:
    response = send(enrolled, protocol.HEARTBEAT, beat())
    reply = msgspec.json.decode(response.content, type=wire.BeatReply)
    assert (response.status_code, reply.want_facts) == (200, True)
    assert Heartbeat.objects.get(node=enrolled.node).liveness == "online"


def test_a_beat_with_a_sample_keeps_it(enrolled: Any) -> None:
    send(enrolled, protocol.HEARTBEAT, beat(telemetry=sample(datetime.now(UTC))))
    assert TelemetrySample.objects.get().node_id == enrolled.node.pk


def test_facts_are_published(enrolled: Any) -> None:
    said = facts([gpu(0)], volumes=[volume("state")])
    response = send(enrolled, protocol.FACTS, as_json(said), "PUT")
    reply = msgspec.json.decode(response.content, type=wire.FactsReply)
    assert (response.status_code, reply) == (200, wire.FactsReply(facts_digest=wire.digest(said), changed=True))
    assert Accelerator.objects.get().key == "GPU-0000"


def test_facts_that_were_published_are_not_asked_for_again(enrolled: Any) -> None:
    said = facts([gpu(0)])
    send(enrolled, protocol.FACTS, as_json(said), "PUT")
    reply = send(enrolled, protocol.HEARTBEAT, beat(boot_id=said.boot_id, facts_digest=wire.digest(said)))
    assert msgspec.json.decode(reply.content, type=wire.BeatReply).want_facts is False


def test_a_goodbye_is_a_planned_stop(enrolled: Any) -> None:
    """Field case 38."""
    boot = uuid4()
    send(enrolled, protocol.HEARTBEAT, beat(boot_id=boot))
    response = send(enrolled, protocol.GOODBYE, as_json(wire.Goodbye(boot_id=boot, reason="SIGTERM")))
    heart = Heartbeat.objects.get(node=enrolled.node)
    assert (response.status_code, response.content) == (204, b"")
    assert (heart.liveness, heart.stop_reason) == ("offline", "SIGTERM")


MESSAGES = [
    (protocol.HEARTBEAT, "POST", beat()),
    (protocol.FACTS, "PUT", as_json(facts())),
    (protocol.GOODBYE, "POST", as_json(wire.Goodbye(boot_id=uuid4()))),
]
EACH = pytest.mark.parametrize(("path", "method", "body"), MESSAGES, ids=["beat", "facts", "goodbye"])


@EACH
def test_a_disabled_node_publishes_nothing_and_is_told_once(
    enrolled: Any, operator: Caller, path: str, method: str, body: bytes
) -> None:
    """Field case 24."""
    control.disable(enrolled.node, reason="maintenance", by=operator, now=datetime.now(UTC))
    assert code(send(enrolled, path, body, method)) == (403, "node_disabled")
    assert code(send(enrolled, path, body, method)) == (403, "node_disabled")

    node = Node.objects.get(pk=enrolled.node.pk)
    assert (node.facts, node.refused_code) == (None, "node_disabled")
    assert events().filter(type="node.refused").count() == 1


@EACH
def test_a_retired_node_is_told_that_it_is_gone(
    enrolled: Any, operator: Caller, path: str, method: str, body: bytes
) -> None:
    """Field case 23."""
    control.retire(enrolled.node, reason="sold", by=operator, now=datetime.now(UTC))
    assert code(send(enrolled, path, body, method)) == (410, "node_retired")


@EACH
def test_a_stranger_is_heard_by_nobody(stranger: Client, path: str, method: str, body: bytes) -> None:
    response = stranger.generic(method, path, body, content_type="application/json")
    assert response.status_code == 401


@pytest.mark.parametrize(
    ("path", "method", "limit"),
    [
        (protocol.HEARTBEAT, "POST", protocol.MAX_BEAT_BYTES),
        (protocol.FACTS, "PUT", protocol.MAX_FACTS_BYTES),
        (protocol.GOODBYE, "POST", protocol.MAX_SMALL_BYTES),
    ],
    ids=["beat", "facts", "goodbye"],
)
def test_a_body_over_its_limit_is_refused_before_it_is_read(enrolled: Any, path: str, method: str, limit: int) -> None:
    """Field case 78."""
    response = send(enrolled, path, b" " * (limit + 1), method)
    assert code(response) == (413, "body_too_large")
    assert str(limit) in response.json()["detail"]


def test_the_largest_inventory_that_the_wire_allows_fits_its_limit(enrolled: Any) -> None:
    """Field case 78: 256 devices and 32 volumes, in one message below the limit."""
    said = facts([gpu(n) for n in range(256)], volumes=[volume(f"v{n}") for n in range(32)])
    assert len(as_json(said)) < protocol.MAX_FACTS_BYTES
    assert send(enrolled, protocol.FACTS, as_json(said), "PUT").status_code == 200
    assert Accelerator.objects.count() == 256


@pytest.mark.parametrize(
    ("body", "expected", "field"),
    [
        (b"{", "malformed", None),
        (b"\xff", "malformed", None),
        (b"[]", "invalid", ""),
        (as_json(facts()).replace(b'"server01"', b"5"), "invalid", "host.hostname"),
        (as_json(facts(hostname="a\x00b")), "invalid", None),
        (as_json(facts([gpu(0), gpu(0)])), "invalid", "accelerators[1].key"),
    ],
    ids=["no json", "no text", "no object", "type", "nul", "twice"],
)
def test_facts_out_of_shape_are_refused_by_field(enrolled: Any, body: bytes, expected: str, field: str | None) -> None:
    response = send(enrolled, protocol.FACTS, body, "PUT")
    assert code(response) == (400, expected)
    if field is not None:
        assert [error["field"] for error in response.json()["errors"]] == [field]


def test_a_text_that_only_looks_like_nul_is_taken(enrolled: Any) -> None:
    response = send(enrolled, protocol.FACTS, as_json(facts(hostname="a\\u0000b")), "PUT")
    assert response.status_code == 200
    assert Node.objects.get(pk=enrolled.node.pk).hostname == "a\\u0000b"


class Body:
    """A body, and whether anybody asked for it; one that does not come holds up whoever asks."""

    asked = False

    def read(self, *_: Any) -> bytes:
        """Nothing."""
        self.asked = True
        return b""


def asked_for_the_body(path: str, authorization: str) -> bool:
    """Whether the endpoint reads what such a sender sends."""
    headers = {"Authorization": authorization, protocol.VERSION_HEADER: "1"}
    request = RequestFactory().generic("POST", path, b"{", content_type="application/json", headers=headers)
    body = Body()
    request._stream = body  # type: ignore[assignment]  # all that is asked of it is read()
    assert lane.view_of(path)(request).status_code == (400 if body.asked else 401)
    return body.asked


@pytest.mark.parametrize("path", [protocol.HEARTBEAT, protocol.ENROLL, protocol.GOODBYE])
@pytest.mark.parametrize("secret", ["", "Bearer x", "Bearer mfn_no_such_thing"])
def test_a_body_is_not_asked_for_before_its_sender_proved_a_secret(path: str, secret: str) -> None:
    assert not asked_for_the_body(path, secret)


def test_the_body_of_a_node_that_proved_itself_is_asked_for(enrolled: Any) -> None:
    assert asked_for_the_body(protocol.HEARTBEAT, enrolled.headers["Authorization"])


def test_a_body_in_chunks_is_refused_rather_than_taken_for_empty(enrolled: Any) -> None:
    client = Client(headers=enrolled.headers | {"Transfer-Encoding": "chunked"})
    response = client.post(protocol.HEARTBEAT, beat(), content_type="application/json")
    assert code(response) == (411, "length_required")
    assert Heartbeat.objects.get(node=enrolled.node).last_heard_at is None


@pytest.mark.parametrize("opening", [b"[", b'{"x":'])
def test_a_body_nested_too_deep_is_malformed(enrolled: Any, opening: bytes) -> None:
    response = send(enrolled, protocol.HEARTBEAT, b'{"x":' + opening * 5000)
    assert code(response) == (400, "malformed")


def test_a_sample_that_names_a_gpu_twice_is_refused(enrolled: Any) -> None:
    twice = sample(datetime.now(UTC), keys=("GPU-0000", "GPU-0001"))
    body = beat(telemetry=twice).replace(b"GPU-0001", b"GPU-0000")
    assert code(send(enrolled, protocol.HEARTBEAT, body)) == (400, "invalid")
    assert not TelemetrySample.objects.exists()


@pytest.mark.parametrize("version", ["0.1\x1b[0m", "0.1\n"])
def test_an_agent_version_with_control_characters_is_refused(enrolled: Any, version: str) -> None:
    response = send(enrolled, protocol.HEARTBEAT, beat(agent_version=version))
    assert code(response) == (400, "invalid")
    assert response.json()["errors"][0]["field"] == "agent_version"
    assert Heartbeat.objects.get(node=enrolled.node).liveness == "offline"
