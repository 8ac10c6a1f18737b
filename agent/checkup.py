"""What the doctor finds out about models: whether the Hub answers, whether its token is good, and the storage roots."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from agent import hub, marker, roots, trouble, wire
from agent.acquire.disk.paths import Tree
from agent.acquire.places import MARKER
from agent.bandwidth import Bandwidth
from agent.bounded import Bounded, StuckError
from agent.client import Client
from agent.config import Config, Link
from agent.finding import EXIT_CONFIG, Finding
from agent.hub import Hub
from agent.logs import told
from agent.roots import Ground
from agent.trouble import Redirected, Trouble, Unreachable

WITHIN = timedelta(seconds=10)
_DEPTH = 3  # of folders below the artifact volume that may hold a root
_MOST_FOLDERS = 2000
_WHOAMI = "/api/whoami-v2"


def of_hub(found: Hub) -> Finding:
    """Ask the Hub, with the token where there is one."""
    link = Link(url=found.hf_endpoint, ca_file=found.hub_ca_file, proxy=found.hub_proxy)
    client = Client(link)
    try:
        if found.hf_token is None:
            answer = client.exchange("HEAD", "/", timeout=WITHIN)
            return _answered(found, answer.status)
        headers = {"Authorization": f"Bearer {found.hf_token.reveal()}"}
        answer = client.exchange("GET", _WHOAMI, headers=headers, timeout=WITHIN)
        if answer.status == 200:
            return Finding("ok", "Hub", f"{found.hf_endpoint} answers, and takes the token{_of(answer.body)}")
        if answer.status == 401:
            text = f"{found.hf_endpoint} refuses the token of {found.hf_token.source}. Set a valid one, or none."
            return Finding("FAIL", "Hub", text, EXIT_CONFIG)
        return _answered(found, answer.status)
    except Redirected:
        return Finding("ok", "Hub", f"{found.hf_endpoint} answers")
    except Trouble as met:
        return Finding("warn", "Hub", _unreachable(found, met))
    finally:
        client.close()


def _answered(found: Hub, status: int) -> Finding:
    if status < 500:
        return Finding("ok", "Hub", f"{found.hf_endpoint} answers")
    return Finding("warn", "Hub", f"{found.hf_endpoint} answers {status}: it, or a proxy before it, is in trouble.")


def _of(body: bytes) -> str:
    """Whose token it is, where the Hub says so."""
    try:
        name = json.loads(body)["name"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return f" of {told(name, 100)}" if isinstance(name, str) and name else ""


def _unreachable(found: Hub, met: Trouble) -> str:
    kind = met.kind if isinstance(met, Unreachable) else met.code
    way = f" through {trouble.host_of(found.hub_proxy)}" if found.hub_proxy else ""
    text = f"{found.hf_endpoint} cannot be reached{way} ({kind.replace('_', ' ')}): no model can be fetched. "
    if kind in ("unknown_ca", "tls", "expired", "not_yet_valid", "wrong_host"):
        return text + f"Set {hub.CA} to the CA that signs there, or check this machine's clock."
    return text + f"Check {hub.ENDPOINT}, {hub.PROXY} (or HTTPS_PROXY and NO_PROXY), DNS and the firewall."


def of_bandwidth(limits: Bandwidth, now: datetime) -> Iterator[Finding]:
    """Which limit holds now; the local clock is named, for a zone that TZ misspells is UTC without a word."""
    if limits == Bandwidth():
        return
    limit = limits.at(now)
    holds = "no limit" if limit is None else f"{limit / 10**6:g} MB a second"
    yield Finding("ok", "bandwidth", f"{holds} now, at {now.astimezone():%H:%M %Z} by the local clock")


def of_roots(settings: Config, node_id: UUID | None) -> Iterator[Finding]:
    """The storage roots whose markers lie in the artifact volume; which are ordered, only the running agent knows."""
    try:
        found = Bounded("markers").call(lambda: _markers(settings.artifact_dir), WITHIN)
    except (OSError, StuckError, RuntimeError):  # told of the volume already
        return
    if not found:
        yield Finding("ok", "storage roots", f"none below {settings.artifact_dir} yet; register one on the node's page")
    for name, marked in found:
        path = str(settings.artifact_dir / name)
        if marked is None:
            yield Finding("warn", "storage root", f"{path}: its marker is damaged. Approve the root again.")
        elif marked.node_id != str(node_id):
            yield Finding("warn", "storage root", f"{path} is marked for another node, {marked.node_id}.")
        else:
            yield _proven(settings, UUID(marked.node_id), wire.RootOrder(root_id=UUID(marked.root_id), path=path))


def _proven(settings: Config, node_id: UUID, order: wire.RootOrder) -> Finding:
    ground = Ground(node_id=node_id, artifact_dir=settings.artifact_dir, ephemeral_ok=settings.allow_ephemeral_state)
    proof = roots.prove(order, ground, now=datetime.now(UTC), probe=False)
    if proof.fault is not None:
        return Finding("warn", "storage root", f"{order.path}: {proof.fault}. {proof.detail}")
    free = (proof.free_bytes.value or 0) / 1024**3
    return Finding("ok", "storage root", f"{order.path}: {proof.filesystem or 'unknown'}, {free:.1f} GiB free")


def _markers(artifact_dir: Path) -> list[tuple[str, marker.Marked | None]]:
    with Tree(Path(os.path.realpath(artifact_dir))) as tree:
        marked = [name for name in _folders(tree) if tree.stat(marker.within(name, MARKER)) is not None]
        return [(name, marker.read(tree, name)) for name in marked]


def _folders(tree: Tree) -> list[str]:
    """The volume itself and the folders below it, to a small depth; never into a root, whose folders are its own."""
    found: list[str] = []
    waiting = [("", 0)]
    while waiting and len(found) < _MOST_FOLDERS:
        name, depth = waiting.pop(0)
        found.append(name)
        if depth < _DEPTH and tree.stat(marker.within(name, MARKER)) is None:
            waiting += [(below, depth + 1) for below in _below(tree, name)]
    return found


def _below(tree: Tree, name: str) -> list[str]:
    try:
        with tree.folder(name) as fd, os.scandir(fd) as entries:
            return sorted(marker.within(name, e.name) for e in entries if e.is_dir(follow_symlinks=False))
    except OSError:  # not ours to read
        return []
