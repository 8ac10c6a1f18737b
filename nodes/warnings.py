"""What an operator should look at about a node, in words and with the remedy: a rule over what the registry holds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from agent.protocol import SPOKEN, Code
from nodes.models import Accelerator, CredentialState, Heartbeat, Node

SKEW_TOLERATED = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Warning:
    """One thing to look at; ``code`` is stable."""

    code: str
    detail: str


def warnings_of(node: Node, heart: Heartbeat | None, accelerators: Sequence[Accelerator]) -> Iterator[Warning]:
    """The warnings of a node with its facts, most urgent first."""
    if node.identity_conflict_at is not None:
        yield Warning(
            "identity_conflict",
            "A copy of this node's identity speaks. Stop the copy's agent, empty its state volume, enroll it as a node "
            "of its own, and clear the conflict.",
        )
    if node.protocol_refused_at is not None:
        spoken = ", ".join(map(str, SPOKEN))
        yield Warning(
            "protocol_refused",
            f"Its agent says protocol {node.protocol_refused}; this control plane speaks {spoken}. Run an agent of the "
            "control plane's release.",
        )
    elif node.refused_code:
        yield Warning("refused", f"Its last contact was refused: {node.refused_code}.")
    if node.held_back_at is not None:
        yield Warning(
            "held_back",
            "It told more changes than the history takes of one node, and is held back: its beats are heard, its other "
            "words wait. Look at its history for what flaps; where nothing explains it, rotate its credential.",
        )
    if node.credential_state == CredentialState.REVOKED and node.refused_code != Code.CREDENTIAL_REVOKED:
        yield Warning("credential_revoked", "It holds no credential that works: enroll it again.")
    yield from _of_clock(heart)
    yield from _of_facts(node)
    missing = [device for device in accelerators if device.missing_since is not None]
    if missing:
        names = ", ".join(f"{device.index} ({device.model or device.key})" for device in missing[:8])
        yield Warning("accelerator_missing", f"{len(missing)} no longer shown by its driver: {names}.")


def _of_clock(heart: Heartbeat | None) -> Iterator[Warning]:
    skew = timedelta(seconds=heart.clock_skew_seconds or 0) if heart else timedelta()
    if abs(skew) > SKEW_TOLERATED:
        way = "ahead of" if skew > timedelta() else "behind"
        seconds = abs(skew).total_seconds()
        yield Warning("clock_skew", f"Its clock is {seconds:.0f} s {way} the control plane's; check its time service.")


def _of_facts(node: Node) -> Iterator[Warning]:
    if not node.facts:
        return
    agent, runtime = node.facts["agent"], node.facts["gpu_runtime"]
    if not agent["tls_verify"]:
        yield Warning("tls_unverified", "Its agent does not verify the control plane's certificate.")
    if agent.get("state_ephemeral"):
        yield Warning("state_ephemeral", "Its state lies in no volume: its identity is lost with the container.")
    if runtime["state"] == "failed":
        code = "" if runtime.get("code") is None else f" (NVML {runtime['code']})"
        yield Warning("gpu_runtime_failed", f"NVML fails{code}: {runtime.get('message') or 'no message'}")
