"""Joining, holding and renewing a credential: nothing half done, nothing thrown away."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest

from agent import protocol
from agent.identity import Identity, NotInvited
from agent.state import State
from agent.trouble import NotModelForge, NotStored, Refused, Trouble
from agent.variables import Secret
from tests.agent.scripted import CREDENTIAL, RENEWED, TOKEN
from tests.agent.simulated import BOOT, NODE, Answering, gone, refused


@pytest.fixture
def state(tmp_path: Path) -> State:
    """An unused folder."""
    made = State(tmp_path / "state")
    made.prepare(allow_ephemeral=True)
    return made


def enroll(identity: Identity, client: Answering) -> None:
    identity.enroll(client, boot_id=BOOT, hostname="server01", display_name="Server 01")


def test_joining_shows_the_token_and_keeps_the_credential(state: State) -> None:
    client = Answering()
    identity = Identity(state, Secret(TOKEN), mint=lambda: NODE)
    enroll(identity, client)
    assert client.bearers(protocol.ENROLL) == [TOKEN]
    assert client.of(protocol.ENROLL)[0].node_id == NODE
    assert Identity(State(state.folder), None).credential() == CREDENTIAL


def test_a_lost_answer_is_healed_by_asking_again_as_the_same_node(state: State) -> None:
    """Field cases 3 and 5."""
    client = Answering()
    client.trouble = lambda _: gone()
    first = Identity(state, Secret(TOKEN), mint=uuid4)
    with pytest.raises(Trouble):
        enroll(first, client)
    client.trouble = lambda _: None
    second = Identity(State(state.folder), Secret(TOKEN), mint=uuid4)  # the process after a kill
    enroll(second, client)
    assert len({body.node_id for body in client.of(protocol.ENROLL)}) == 1


@pytest.mark.parametrize("source", ["MODELFORGE_AGENT_ENROLLMENT_TOKEN", "MODELFORGE_AGENT_ENROLLMENT_TOKEN_FILE"])
def test_the_credential_wins_over_a_leftover_token_and_the_warning_does_not_print_it(
    source: str, state: State, caplog: pytest.LogCaptureFixture
) -> None:
    """Field case 8."""
    state.keep_node_id(NODE)
    state.credential.keep(CREDENTIAL)
    identity = Identity(state, Secret(TOKEN, source))
    assert identity.credential() == CREDENTIAL
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{source} is set, and this node has a credential")
    assert TOKEN not in caplog.text


@pytest.mark.parametrize("token", [None, "<one-time-token>", "mfe_a b", "mfe_\u20ac", "mfe_\x1b", CREDENTIAL])
def test_without_a_credential_a_usable_token_is_asked_for(state: State, token: str | None) -> None:
    with pytest.raises(NotInvited, match="MODELFORGE_AGENT_ENROLLMENT_TOKEN") as error:
        Identity(state, Secret(token) if token else None)
    assert token is None or token not in str(error.value)
    assert State(state.folder).node_id() is None


def test_a_file_replaced_from_outside_is_used_without_a_restart(state: State) -> None:
    """Field case 14."""
    identity = _enrolled(state)
    assert not identity.changed()
    (state.folder / "node-credential").write_text(f"{RENEWED}\n")
    assert identity.changed()
    assert identity.credential() == RENEWED
    assert not identity.changed()


@pytest.mark.parametrize("content", ["", RENEWED[:10], "\0\0\0"])
def test_a_half_written_file_changes_nothing_until_it_is_whole(
    state: State, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    identity = _enrolled(state)
    (state.folder / "node-credential").write_text(content)
    for _ in range(3):
        assert identity.credential() == CREDENTIAL
    assert len(caplog.records) == 1
    assert (state.folder / "node-credential").read_text() == content  # the writer's file is not touched
    (state.folder / "node-credential").write_text(RENEWED)
    assert identity.credential() == RENEWED


def test_a_deleted_file_does_not_end_a_running_agent(state: State) -> None:
    identity = _enrolled(state)
    (state.folder / "node-credential").unlink()
    assert identity.credential() == CREDENTIAL


def test_a_renewed_credential_is_used_and_kept(state: State) -> None:
    identity, client = _enrolled(state), Answering()
    identity.renew(client)
    assert client.bearers(protocol.CREDENTIAL) == [CREDENTIAL]
    assert identity.credential() == RENEWED
    assert State(state.folder).credential.recover() == RENEWED


def test_a_renewal_that_fails_keeps_the_old_credential(state: State) -> None:
    identity, client = _enrolled(state), Answering()
    client.trouble = lambda _: refused("credential_revoked")
    with pytest.raises(Refused):
        identity.renew(client)
    assert State(state.folder).credential.recover() == CREDENTIAL


def test_a_full_disk_while_joining_is_a_trouble_to_wait_out(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = Identity(state, Secret(TOKEN), mint=lambda: NODE)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("agent.atomic.write", full)
    with pytest.raises(NotStored) as error:
        enroll(identity, Answering())
    assert CREDENTIAL not in str(error.value)
    assert not error.value.parks


@pytest.mark.parametrize("issued", ["", "secret", TOKEN])
def test_a_credential_out_of_shape_is_not_stored(state: State, issued: str) -> None:
    identity, client = Identity(state, Secret(TOKEN), mint=lambda: NODE), Answering()
    client.issued = [issued]
    with pytest.raises(NotModelForge):
        enroll(identity, client)
    assert identity.credential() is None


def test_an_accepted_credential_becomes_the_copy_to_fall_back_to(state: State) -> None:
    identity = _enrolled(state)
    identity.accepted(CREDENTIAL)
    (state.folder / "node-credential").write_bytes(b"")
    assert Identity(State(state.folder), None).credential() == CREDENTIAL


def test_the_id_is_a_random_uuid_and_stays(state: State) -> None:
    found = Identity(state, Secret(TOKEN)).node_id
    assert isinstance(found, UUID)
    assert found.version == 4
    assert Identity(State(state.folder), Secret(TOKEN)).node_id == found


def _enrolled(state: State) -> Identity:
    state.keep_node_id(NODE)
    state.credential.keep(CREDENTIAL)
    return Identity(state, None)
