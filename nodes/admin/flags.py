"""What is odd about a node, each with its explanation and its remedy: for the list, the node's page and the home."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Literal

from django.conf import settings

from agent.protocol import SPOKEN, Code
from nodes.admin.fleet import SKEW_TOLERATED
from nodes.liveness import Liveness
from nodes.models import CredentialState, Heartbeat, Node
from nodes.wording import exact, relative, span

Tone = Literal["danger", "warning", "info", "neutral"]


@dataclass(frozen=True, slots=True)
class Flag:
    """One oddity: a chip's text, a heading, what it means, and what to do."""

    key: str
    chip: str
    title: str
    meaning: str
    remedy: str
    tone: Tone
    urgent: bool = True  # belongs under "needs attention"


_REFUSED = {
    Code.NODE_DISABLED: "Enable the node when it may publish again; its agent goes on by itself.",
    Code.NODE_RETIRED: "Stop the agent. To use the server again, empty its state volume and enroll it anew.",
    Code.CREDENTIAL_REVOKED: "Rotate the credential and install the new one on the server, or enroll it again.",
    Code.CREDENTIAL_SUPERSEDED: "Install the newest one (python -m agent credential set) on the server, or rotate.",
    Code.IDENTITY_CONFLICT: "Stop one of the two agents, then clear the conflict: whichever speaks next goes on.",
}


def flags_of(node: Node, now: datetime) -> Iterator[Flag]:
    """Every flag of a node out of ``fleet()``, most urgent first."""
    if node.retired_at is not None:
        yield Flag(
            "retired",
            "retired",
            "Retired",
            f"Retired {relative(node.retired_at, now)}. Its contacts are answered with 410 node_retired.",
            "To use this server again, empty its state volume and enroll it as a new node.",
            "neutral",
            urgent=False,
        )
        return  # nothing else about it can be mended, or has to be
    heart = heart_of(node)
    yield from _refusals(node, heart, now)
    yield from _silence(node, heart, now)
    yield from _trust(node, now)
    yield from _host(node, heart)


def heart_of(node: Node) -> Heartbeat | None:
    """The node's heartbeat, without a query where it was selected; None before the first."""
    return getattr(node, "heartbeat", None)


def liveness_of(node: Node, now: datetime) -> Liveness:
    """The liveness to show."""
    heart = heart_of(node)
    return heart.seen_at(now) if heart else Liveness.OFFLINE


def _refusals(node: Node, heart: Heartbeat | None, now: datetime) -> Iterator[Flag]:
    if node.identity_conflict_at is not None:
        copy = node.identity_conflict
        heard = "said goodbye" if heart is not None and heart.stopped_at is not None else "is heard"
        yield Flag(
            "conflict",
            "conflict",
            "Identity conflict",
            f"Two processes speak with this node's identity: {copy.get('speaking_from') or 'one address'} {heard}, "
            f"{copy.get('address') or 'another address'} was refused "
            f"(409, first {relative(node.identity_conflict_at, now)}). Usually a cloned disk or a copied state volume.",
            "Stop one of the two agents. If the one that stays is refused (409), clear the conflict here: whichever "
            "agent speaks next goes on.",
            "danger",
        )
    if node.protocol_refused_at is not None:
        said = "no protocol version" if node.protocol_refused == "none" else f"protocol {node.protocol_refused!r}"
        yield Flag(
            "protocol",
            "protocol",
            "Protocol refused",
            f"The agent said {said}; this control plane speaks {', '.join(map(str, SPOKEN))} "
            f"(refused {relative(node.protocol_refused_at, now)}).",
            "Run an agent of this control plane's release on the server.",
            "danger",
        )
    if node.refused_code and node.refused_at and node.refused_code != Code.PROTOCOL_UNSUPPORTED:
        expected = node.refused_code == Code.NODE_DISABLED and not node.enabled
        yield Flag(
            "refused",
            "refused",
            f"Last contact refused: {node.refused_code}",
            f"The agent was refused {relative(node.refused_at, now)}, on {exact(node.refused_at)}.",
            _REFUSED.get(Code(node.refused_code), "See the history for what it sent.")
            if node.refused_code in set(Code)
            else "See the history for what it sent.",
            "neutral" if expected else "warning",
            urgent=not expected,
        )
    if node.held_back_at is not None:
        most, counted = settings.NODE_HISTORY_PER_HOUR, sum((node.history_untold or {}).values())
        meaning = (
            f"Since {exact(node.held_back_at)}, for it told more than {most} changes in an hour: claims and facts are "
            f"answered with 429; beats are heard, and {counted} changes that they made were only counted."
        )
        remedy = "Its history shows what flaps: a disk, an agent that restarts. Mend that, and it is let go by itself. "
        remedy += "Where nothing explains it, disable the node and rotate its credential."
        yield Flag("held_back", "held back", "Held back: it tells too much", meaning, remedy, "warning")


def _silence(node: Node, heart: Heartbeat | None, now: datetime) -> Iterator[Flag]:
    if not node.enabled:
        reason = f" Reason: {node.enabled_reason}" if node.enabled_reason else ""
        yield Flag(
            "disabled",
            "disabled",
            "Disabled",
            f"Ineligible, and every publication of its agent is refused with 403 node_disabled.{reason}",
            "Enable it when it may work again.",
            "neutral",
            urgent=False,
        )
    if heart is None or heart.last_heard_at is None:
        yield Flag(
            "unheard",
            "never heard",
            "Never heard",
            "The node has enrolled, but no heartbeat has arrived yet.",
            "Look at what the agent says on its server: python -m agent health, python -m agent doctor.",
            "neutral",
            urgent=False,
        )
    elif heart.stopped_at is not None:
        yield Flag(
            "stopped",
            "stopped",
            "Stopped as planned",
            f"The agent said goodbye {relative(heart.stopped_at, now)}: {heart.stop_reason or 'stopped'}.",
            "Start the agent when the server should work again.",
            "neutral",
            urgent=False,
        )
    elif (state := heart.seen_at(now)) is not Liveness.ONLINE:
        since = heart.stale_at if state is Liveness.STALE else heart.offline_at
        yield Flag(
            state.value,
            state.value,
            "Gone silent" if state is Liveness.OFFLINE else "Late",
            f"Last heard {relative(heart.last_heard_at, now)}; "
            f"{state.value} since {exact(since or heart.last_heard_at)}.",
            "Check the server, its network and the agent's log; the agent retries by itself.",
            "danger" if state is Liveness.OFFLINE else "warning",
        )


def _trust(node: Node, now: datetime) -> Iterator[Flag]:
    if node.credential_state == CredentialState.REVOKED:
        yield Flag(
            "revoked",
            "revoked",
            "Credential revoked",
            "No credential of this node works.",
            "Rotate the credential and install the new one on the server, or enroll the server again with a new token.",
            "warning",
        )
    if node.credential_state == CredentialState.ROTATING and node.rotation_ends_at is not None:
        yield Flag(
            "rotation",
            "rotating",
            "Rotation pending",
            "A new credential was issued and has not been used yet. The old one dies when the new one is first used, "
            f"at the latest {relative(node.rotation_ends_at, now)} ({exact(node.rotation_ends_at)}).",
            "Install it on the server (python -m agent credential set); the agent notices without a restart.",
            "info",
            urgent=False,
        )
    if getattr(node, "agent_ca", None) == "none" and not _loopback(node.address):
        yield Flag(
            "plain",
            "plain HTTP",
            "Plain HTTP",
            f"The agent speaks to us without TLS, and not from this machine ({node.address or 'address unknown'}): "
            "whoever sits between can read its credential.",
            "Put a TLS proxy in front of the control plane and give the agent its https:// address. Then rotate.",
            "warning",
        )
    elif getattr(node, "tls_unverified", False):
        yield Flag(
            "tls",
            "TLS off",
            "TLS is not verified",
            "The agent runs with MODELFORGE_AGENT_TLS_VERIFY=false: whoever sits between could read its credential.",
            "Set MODELFORGE_AGENT_TLS_VERIFY=true; for a private CA set MODELFORGE_AGENT_CA_CERT_PATH. Then rotate.",
            "warning",
        )


def _loopback(address: str | None) -> bool:
    """Whether an address is this machine's own."""
    try:
        return bool(address) and ip_address(str(address)).is_loopback
    except ValueError:
        return False


def _host(node: Node, heart: Heartbeat | None) -> Iterator[Flag]:
    missing = getattr(node, "missing_accelerators", 0)
    if missing:
        yield Flag(
            "missing",
            f"{missing} missing",
            f"{missing} accelerator{'s' if missing > 1 else ''} missing",
            "It was seen in this node before and is no longer." if missing == 1 else "They were seen here before.",
            "Check the server's kernel log (Xid), the driver and the slot. If it was taken out on purpose, leave it.",
            "warning",
        )
    if getattr(node, "gpu_state", None) == "failed":
        yield Flag(
            "runtime",
            "NVML failed",
            "GPU runtime failed",
            f"NVML does not answer: {getattr(node, 'gpu_message', '') or 'no message'}.",
            "Often a driver update without a reboot, or a container that lost its devices: recreate the agent's "
            "container, or reboot the server. The agent retries by itself.",
            "warning",
        )
    skew = timedelta(seconds=heart.clock_skew_seconds) if heart and heart.clock_skew_seconds is not None else None
    if skew is not None and abs(skew) > SKEW_TOLERATED:
        yield Flag(
            "skew",
            f"clock {'+' if skew > timedelta() else '−'}{span(skew)}",
            "Clock skew",
            f"The server's clock is {span(skew)} {'ahead of' if skew > timedelta() else 'behind'} ours. Times here are "
            "by the control plane's clock.",
            "Let the server keep time with NTP (chrony, systemd-timesyncd).",
            "warning",
        )
