"""What a refused contact leaves behind."""

from datetime import timedelta

import pytest

from agent.protocol import Code
from nodes import refusals
from nodes.audit import events
from nodes.models import Node
from tests.nodes.hearing import START, a_node, speaker, told

pytestmark = pytest.mark.django_db

SECOND = timedelta(seconds=1)


def test_a_refused_contact_is_noted_each_time_and_told_once() -> None:
    node = a_node()
    for turn in range(3):
        refusal = refusals.note(speaker(node), Code.NODE_DISABLED, now=START + turn * SECOND)
        assert refusal.code is Code.NODE_DISABLED
    node.refresh_from_db()
    assert (node.refused_code, node.refused_at) == ("node_disabled", START + 2 * SECOND)
    assert told() == ["node.refused"]


def test_another_reason_is_told_again() -> None:
    node = a_node()
    refusals.note(speaker(node), Code.NODE_DISABLED, now=START)
    refusals.note(speaker(node), Code.CREDENTIAL_REVOKED, now=START)
    assert [event.details["code"] for event in events().order_by("position")] == ["node_disabled", "credential_revoked"]


@pytest.mark.parametrize(
    ("header", "said"), [("0", "0"), ("9", "9"), (None, "none"), ("abc", "abc"), ("", "empty"), ("9" * 99, "9" * 32)]
)
def test_a_protocol_that_we_do_not_speak_is_noted_with_what_it_said(header: str | None, said: str) -> None:
    """Field case 25."""
    node = a_node()
    for turn in range(2):
        refusal = refusals.note_protocol(speaker(node), header, now=START + turn * SECOND)
        assert refusal.code is Code.PROTOCOL_UNSUPPORTED
        assert "speaks 1" in refusal.detail
    node.refresh_from_db()
    assert (node.protocol_refused, node.protocol_refused_at) == (said, START)
    assert node.refused_at == START + SECOND
    assert told() == ["node.protocol_refused"]


def test_a_refused_contact_does_not_make_a_node_online() -> None:
    node = a_node()
    refusals.note(speaker(node), Code.NODE_DISABLED, now=START)
    heart = Node.objects.get().heartbeat
    assert (heart.liveness, heart.last_heard_at) == ("offline", None)
