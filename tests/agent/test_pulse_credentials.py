"""The beat loop and its credential: replaced, renewed, revoked, and let in again; on told time."""

from pathlib import Path

import pytest

from agent import protocol, wire
from agent.trouble import Trouble
from tests.agent.scripted import CREDENTIAL, RENEWED, TOKEN
from tests.agent.simulated import Parts, gone, refused


def test_a_credential_replaced_meanwhile_is_used_with_the_next_beat(parts: Parts) -> None:
    parts.client.trouble = lambda _: refused("credential_superseded")
    parts.beat()
    (parts.state.folder / "node-credential").write_text(RENEWED)
    parts.client.trouble = lambda _: None
    parts.beat()
    assert parts.client.bearers(protocol.HEARTBEAT) == [CREDENTIAL, RENEWED]


def test_told_to_renew_it_beats_with_the_new_credential(parts: Parts) -> None:
    parts.client.reply = wire.BeatReply(
        heartbeat_interval_seconds=15, telemetry_interval_seconds=60, renew_credential=True
    )
    parts.beat()
    parts.beat()
    assert parts.client.bearers(protocol.HEARTBEAT) == [CREDENTIAL, RENEWED]
    assert parts.state.credential.peek() == RENEWED


def test_a_renewal_that_fails_is_not_tried_with_every_beat_and_costs_none(parts: Parts) -> None:
    parts.client.reply = wire.BeatReply(
        heartbeat_interval_seconds=15, telemetry_interval_seconds=60, renew_credential=True
    )
    parts.client.trouble = lambda path: gone() if path == protocol.CREDENTIAL else None
    parts.hour()
    assert len(parts.client.of(protocol.CREDENTIAL)) < 25
    assert len(parts.client.of(protocol.HEARTBEAT)) > 200
    assert parts.health.report.state == "healthy"


def test_a_revoked_node_with_a_fresh_invitation_joins_again_as_the_same_node(tmp_path: Path) -> None:
    parts = Parts(tmp_path, token=TOKEN)
    parts.client.issued = [RENEWED]
    beats: list[Trouble | None] = [refused("credential_revoked"), None]
    parts.client.trouble = lambda path: beats.pop(0) if path == protocol.HEARTBEAT else None
    parts.beat()
    assert parts.client.bearers(protocol.HEARTBEAT) == [CREDENTIAL, RENEWED]
    assert parts.client.of(protocol.ENROLL)[0].node_id == parts.identity.node_id


def test_a_spent_token_is_tried_once_and_the_revocation_is_what_is_told(tmp_path: Path) -> None:
    parts = Parts(tmp_path, token=TOKEN)
    parts.client.trouble = lambda path: (
        refused("token_used", 409) if path == protocol.ENROLL else refused("credential_revoked")
    )
    parts.hour()
    assert len(parts.client.of(protocol.ENROLL)) == 1
    assert parts.health.report.code == "credential_revoked"
    assert parts.state.credential.peek() == CREDENTIAL


@pytest.mark.parametrize("code", ["credential_superseded", "node_disabled", "identity_conflict"])
def test_other_refusals_never_spend_an_invitation(tmp_path: Path, code: str) -> None:
    parts = Parts(tmp_path, token=TOKEN)
    parts.client.trouble = lambda _: refused(code)
    parts.beat()
    assert parts.client.of(protocol.ENROLL) == []
