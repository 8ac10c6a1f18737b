"""What operators do to a stack that runs: rotate, put a certificate of their own in place, and renew it."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from tests.deploy.parts import NAME, NodeAgent, Stack
from tests.parts.ports import until

NewAgent = Callable[..., NodeAgent]
SPOOFED = "198.51.100.7"


def test_a_rotated_credential_is_set_without_a_restart(stack: Stack, agent: NodeAgent) -> None:
    id, container = agent.node_id, agent.container
    fresh = stack.site.api("POST", f"admin/nodes/{id}/credential/rotate", {"overlap_seconds": 0})["credential"]
    agent.server.compose("exec", "-T", "node-agent", "modelforge-agent", "credential", "set", stdin=fresh)
    until(lambda: not stack.node(id)["rotation_pending"], "the new credential is used", within=60, every=0.5)
    agent.wait_online()
    assert agent.container == container
    assert fresh not in agent.log()


def test_down_and_up_of_the_control_plane_keep_its_data_its_ca_and_its_secrets(stack: Stack, agent: NodeAgent) -> None:
    agent.wait_online()
    node = agent.node_id
    began = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    stack.server.compose("down")
    stack.server.compose("up", "-d", "--wait")
    until(stack.is_ready, "the stack is ready, with the same CA at the door", within=60, every=0.2)
    is_heard(stack, agent)  # asked for with the same admin token
    told = {event["type"] for event in stack.site.events(since=began, node=node)}
    assert "node.offline" not in told
    stack.manage("audit_verify")


def test_a_copied_state_volume_is_told_as_a_conflict(stack: Stack, agent: NodeAgent, new_agent: NewAgent) -> None:
    joined = new_agent().join("is copied")
    copy = new_agent()
    tar = ("run", "--rm", "-T", "--entrypoint", "tar", "node-agent", "-C", "/data/state")
    archive = copy.server.folder / "state.tar"
    joined.server.binary(*tar, "-cf", "-", ".", into=archive)
    copy.server.compose("build", "-q")
    copy.server.binary(*tar, "-xf", "-", out_of=archive)
    copy.up()
    until(lambda: stack.node(joined.node_id)["identity_conflict"], "the conflict is told", within=60, every=0.5)
    joined.says("identity_conflict")


def told_address(stack: Stack, **headers: str) -> str:
    """The address that the history keeps of an act that is sent with these headers."""
    sent = {"X-ModelForge-Admin-Token": stack.site.admin_token} | headers
    body = {"expires_in_seconds": 60, "display_name": "from where"}
    answer = stack.site.ask("POST", "/api/v1/admin/node-enrollments", body, headers=sent)
    assert answer.status == 201
    return str(stack.site.events(type="enrollment_token.created")[0]["address"])


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X_Forwarded_For", "Forwarded"])
def test_nobody_may_say_from_where_he_comes(stack: Stack, header: str) -> None:
    assert told_address(stack, **{header: SPOOFED}) not in {SPOOFED, ""}


@contextmanager
def own_certificate(stack: Stack, ca: trustme.CA, folder: Path) -> Iterator[None]:
    """The proxy with a certificate of one's own, trusting a proxy before it; as it was afterwards."""
    write(ca, folder, timedelta(days=30))
    before, stack.site.ca = stack.site.ca, folder.with_suffix(".pem")
    ca.cert_pem.write_to_path(str(stack.site.ca))
    stack.server.write(
        MODELFORGE_TLS="/certificates/server.crt /certificates/server.key",
        MODELFORGE_CERTIFICATES=str(folder),
        MODELFORGE_TRUSTED_PROXIES="0.0.0.0/0",
    )
    try:
        stack.server.compose("up", "-d", "--wait")
        yield
    finally:
        stack.site.ca = before
        stack.server.write(MODELFORGE_TLS=None, MODELFORGE_CERTIFICATES=None, MODELFORGE_TRUSTED_PROXIES=None)
        stack.server.compose("up", "-d", "--wait")
        until(stack.is_ready, "the stack is as it was", within=60, every=0.2)


def write(ca: trustme.CA, folder: Path, valid: timedelta) -> None:
    """A certificate for the stack's name, and its key, as an operator would put them there."""
    leaf = ca.issue_cert(NAME, not_after=datetime.now(UTC) + valid)
    chain = b"".join(part.bytes() for part in leaf.cert_chain_pems)
    (folder / "server.crt").write_bytes(chain)
    (folder / "server.key").write_bytes(leaf.private_key_pem.bytes())


def expires(stack: Stack) -> str:
    """Until when the certificate at the door is good, as a verified handshake tells."""
    context = ssl.create_default_context(cafile=str(stack.site.ca))
    with (
        socket.create_connection(("127.0.0.1", stack.site.port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=NAME) as secure,
    ):
        certificate = secure.getpeercert()
    assert certificate is not None
    return str(certificate["notAfter"])


def test_an_agent_that_knows_both_cas_never_notices_the_change_nor_a_renewal(
    stack: Stack, new_agent: NewAgent, tmp_path: Path
) -> None:
    """docs/deploy.md, "Changing to another CA": the proxy's own, one of ours, its certificate renewed, and back."""
    ca, folder, both = trustme.CA(), tmp_path / "certificates", tmp_path / "both.crt"
    folder.mkdir()
    both.write_bytes(stack.site.ca.read_bytes() + ca.cert_pem.bytes())
    agent = new_agent(MODELFORGE_AGENT_CA_CERT_PATH=str(both)).join("knows both")
    with own_certificate(stack, ca, folder):
        until(stack.is_ready, "the stack is ready behind it", within=60, every=0.2)
        is_heard(stack, agent)
        before = expires(stack)
        write(ca, folder, timedelta(days=60))
        stack.server.compose("exec", "-T", "proxy", "caddy", "reload", "--force", "--config", "/etc/caddy/Caddyfile")
        until(lambda: expires(stack) != before, "the renewed certificate is served", within=20, every=0.2)
        is_heard(stack, agent)
        seen_from = told_address(stack, **{"X-Forwarded-For": f"203.0.113.9, {SPOOFED}"})
        assert seen_from == SPOOFED  # the trusted proxy's word
    is_heard(stack, agent)
    assert "CA" not in agent.log()


def is_heard(stack: Stack, agent: NodeAgent) -> None:
    """One more beat from now on."""
    now = datetime.now(UTC).isoformat()
    until(lambda: stack.node(agent.node_id)["last_heard_at"] > now, "a beat is heard", within=30, every=0.2)


def test_an_admin_token_of_ones_own_takes_the_place_of_the_one_that_was_made(stack: Stack) -> None:
    """From here on it is the stack's."""
    made, own = stack.site.admin_token, "an-admin-token-of-the-operators-own-0123456789"
    stack.server.write(MODELFORGE_OPERATOR_API_KEY="short")
    code, _, told = stack.server.tried("run", "--rm", "-T", "secrets")
    assert code == 78
    assert "MODELFORGE_OPERATOR_API_KEY has 5 characters" in told
    stack.server.write(MODELFORGE_OPERATOR_API_KEY=own)
    stack.server.compose("up", "-d", "--force-recreate", "--wait", "secrets", "web")
    stack.server.write(MODELFORGE_OPERATOR_API_KEY=None)
    stack.site.admin_token = own
    assert stack.site.api("GET", "hardware/nodes?page_size=1")["results"]
    refused = stack.site.ask("GET", "/api/v1/hardware/nodes", headers={"X-ModelForge-Admin-Token": made})
    assert refused.status == 401
