"""What is wrong with a storage root, a job or an artifact, in words, and what to do: a rule over wire codes."""

from collections.abc import Mapping
from typing import Any

from agent import wire
from artifacts.leases import LASTING
from nodes.wording import count, size

ROOT_FAULTS: dict[str, tuple[str, str]] = {
    "missing": (
        "The folder is not there",
        "Mount it into the agent's environment at the container path, or correct the path: register the right one.",
    ),
    "not_a_folder": ("It is no folder", "Put a folder at this path, or register another one."),
    "a_link": (
        "The path leads over a symbolic link",
        "Register the real path; what lies behind a link can be changed under a download.",
    ),
    "outside_volumes": (
        "Outside the agent's artifact volume",
        "Register a folder below the artifact volume that the node's page shows.",
    ),
    "not_mounted": (
        "Nothing is mounted there",
        "Mount the host folder into the agent's container: what is written there now dies with the container.",
    ),
    "fuse": (
        "A FUSE share",
        "Register the folder on the disk or pool itself (on Unraid /mnt/cache or /mnt/disk1, never /mnt/user).",
    ),
    "marker_missing": (
        "The marker is gone",
        "Usually the disk is not mounted: mount it, and the root is verified by itself. If the folder was emptied on "
        "purpose, approve it again.",
    ),
    "marker_foreign": (
        "It carries another root's marker",
        "Where that root is in use, register another folder. Where it was another node's and is in use no more, remove "
        "the file .modelforge-root in this folder, then approve it again.",
    ),
    "device_changed": (
        "Another disk than the approved one",
        "Mount the approved disk again. If the disk was replaced on purpose, approve the folder again.",
    ),
    "not_writable": (
        "The agent may not write there",
        "Give the agent's user the right to write, or mount it writable.",
    ),
    "overdue": ("The file system does not answer", "Look at the server's disk or its file server, and its kernel log."),
    "error": ("The folder could not be looked at", "Read the detail and the agent's log on the server."),
}

FAILURES: dict[str, tuple[str, str]] = {
    "insufficient_capacity": (
        "Not enough room",
        "Make room on the server, delete what other jobs left half done, lower the root's reserve or raise its "
        "ceiling, or order fewer files. Then retry.",
    ),
    "gated_no_token": (
        "The repository is gated, and the agent has no Hub token",
        "Give the agent MODELFORGE_HF_TOKEN (or MODELFORGE_HF_TOKEN_FILE) on its server, restart it, then retry.",
    ),
    "gated_not_accepted": (
        "The repository is gated, and its terms are not accepted",
        "Accept the terms on the Hub with the account of the agent's token, then retry.",
    ),
    "token_invalid": (
        "The Hub refused the agent's token",
        "Replace MODELFORGE_HF_TOKEN on the server, restart the agent, then retry.",
    ),
    "not_found": (
        "No such repository, revision or file",
        "Check the names; capitals count. A private repository needs a token that may read it.",
    ),
    "root_unverified": (
        "The storage root is not verified",
        "The root's page says what is wrong with it. Mend that, then retry.",
    ),
    "manifest_refused": (
        "The repository's files were refused",
        "Order again: with other patterns, with a format allowed and a reason for it, or of another commit.",
    ),
    "unsupported": ("The agent cannot do this", "Run an agent of this control plane's release on the server."),
    "source_unavailable": (
        "The Hub did not answer",
        "If it lasts, check the server's way to the Hub: HF_ENDPOINT, proxy, DNS.",
    ),
    "rate_limited": ("The Hub asked to wait", "That spends no attempt. With a Hub token the limits are wider."),
    "stalled": ("Bytes stopped coming", "If it lasts, check the server's network. It goes on from where it stopped."),
    "verification_failed": (
        "The bytes are not what the repository says",
        "The bad file is in the node's quarantine. Suspect a proxy or mirror, the memory, or the disk.",
    ),
    "lease_lost": ("The agent was not heard for the length of its lease", "Look at the node's page."),
    "storage_error": ("Reading or writing failed", "Look at the server's kernel log and at the disk."),
}

NUMBERS = {
    "needed_bytes": "Needed",
    "free_bytes": "Free",
    "missing_bytes": "Missing",
    "reserve_bytes": "Reserve",
    "reserved_bytes": "Reserved by other jobs",
    "room_bytes": "Left under the ceiling",
    "inodes_needed": "Files needed",
    "inodes_free": "Files free",
}

PHASES = {
    "plan": "planning",
    "guard": "checking room",
    "fetch": "fetching",
    "verify": "verifying",
    "publish": "publishing",
    "remove": "removing",
}

TYPES: dict[str, str] = {wire.ACQUIRE: "acquire", wire.VERIFY: "verify", wire.REMOVE: "remove"}


def root_fault(fault: str) -> tuple[str, str]:
    """A root's fault as a title and a remedy; one that this release does not know, as it stands."""
    return ROOT_FAULTS.get(fault, (fault.replace("_", " "), "Read the detail and the agent's log on the server."))


def failure(code: str, *, again: bool = False) -> tuple[str, str]:
    """A job's failure as a title and a remedy; one that this release does not know, as it stands.

    Args:
        code: a ``wire.FailureCode``.
        again: the job has not ended, and is tried again by itself.
    """
    title, remedy = FAILURES.get(code, (code.replace("_", " "), "Read the detail and the agent's log on the server."))
    if code in LASTING:
        return title, remedy
    return title, f"It is tried again by itself. {remedy}" if again else f"Its attempts are spent. {remedy} Then retry."


def verdict(preflight: Mapping[str, Any] | None) -> str:
    """What a preflight came to, in a word; "" where there was none."""
    if not preflight:
        return ""
    return "would be refused" if preflight.get("refused") else "fits" if preflight.get("fits") else "does not fit"


def numbers(told: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A failure's numbers in words, the known ones first and in the order of a subtraction."""
    named = [*(name for name in NUMBERS if name in told), *(name for name in told if name not in NUMBERS)]
    return [(_label(name), _said(name, told[name])) for name in named]


def _label(name: str) -> str:
    return NUMBERS.get(name, name.removesuffix("_bytes").replace("_", " ").capitalize())


def _said(name: str, value: Any) -> str:
    return str(value) if not isinstance(value, int) else size(value) if name.endswith("_bytes") else count(value)
