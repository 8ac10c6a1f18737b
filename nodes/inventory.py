"""What a node consists of: its published facts, and the history of what came, went and came back.

A GPU is missing only when a runtime that works no longer shows it. Where NVML fails or vanishes nothing was observed
about the GPUs, so the last known ones stay as they were last seen, and the runtime's change is the event.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.db import transaction

from agent.protocol import Code
from agent.wire import AcceleratorFacts, Facts, FactsReply, FieldError, GpuRuntime, Reading, VolumeFacts, digest
from nodes import holding, labels, refusals
from nodes.audit import Entry, Subject, record_many
from nodes.callers import NodeCaller, Refused
from nodes.event_types import EventType
from nodes.models import Accelerator, BootSession, Heartbeat, Node, Volume


def publish(facts: Facts, *, by: NodeCaller, now: datetime) -> FactsReply:
    """Take a node's facts as the present ones; facts that say nothing new leave no trace in the history.

    Raises:
        Refused: ``invalid`` where two devices or volumes share a name, ``identity_conflict`` where another process
            start has taken over since, ``node_disabled`` or ``node_retired`` where an operator was faster,
            ``throttled`` for news where it told too much of late.
    """
    _refuse_unclear(facts)
    said = digest(facts)
    with transaction.atomic():
        node = Node.objects.select_for_update().get(pk=by.node_id)
        forbidden, changed = refusals.forbidden(node), said != node.facts_digest
        held = holding.refuse(node, by=by, now=now) if forbidden is None and changed else None
        if forbidden is None and held is None:
            _refuse_superseded(node, facts)
            _refuse_haste(node, said, now)
            entries = list(_news(node, facts)) if changed else []
            _write_node(node, facts, said, now) if changed else _seen_again(node, now)
            entries += _write_accelerators(node, facts, now)
            _write_volumes(node, facts.volumes, now)
            about = Subject.node(node)
            record_many([Entry(type, by, about, now, details) for type, details in _few(entries)])
    if forbidden is not None:
        raise refusals.note(by, forbidden, now=now)
    if held is not None:
        raise held
    return FactsReply(facts_digest=said, changed=changed)


News = tuple[EventType, dict[str, Any]]
NEWS_OF_A_KIND = 16  # events of one kind that one publication may add
PACE = timedelta(seconds=1)  # between two publications of one node; an agent rests five


def _refuse_haste(node: Node, said: str, now: datetime) -> None:
    """Facts that change from one instant to the next are none, and each change would stay in the history for good."""
    if node.facts_at is not None and said != node.facts_digest and node.facts_at < now < node.facts_at + PACE:
        after = node.facts_at + PACE - now
        raise Refused(Code.THROTTLED, "This node published other facts just now; wait.", retry_after=after)


def _refuse_superseded(node: Node, facts: Facts) -> None:
    """Only the present process start speaks for a node; one that has not beaten yet is accepted."""
    if Heartbeat.objects.filter(node=node, boot_id=facts.boot_id).exists():
        return
    boot = BootSession.objects.filter(node=node, boot_id=facts.boot_id, superseded_at__isnull=False).first()
    if boot is not None and boot.superseded_at is not None:
        raise refusals.superseded(boot.superseded_at)


def _few(news: Sequence[News]) -> list[News]:
    """One event a device, but one for all of a kind where many change at once: the history cannot be cut afterwards."""
    counts = Counter(type for type, _ in news)
    told = [(type, details) for type, details in news if counts[type] <= NEWS_OF_A_KIND]
    for type in (type for type, count in counts.items() if count > NEWS_OF_A_KIND):
        keys = [details["key"] for kind, details in news if kind is type]
        told.append((type, {"count": len(keys), "keys": keys[:NEWS_OF_A_KIND]}))
    return told


def _refuse_unclear(facts: Facts) -> None:
    """A name with control characters in it, or two things of one name."""
    odd = labels.text_fault(facts.host.hostname, "host.hostname", least=1, most=255)
    errors = [odd] if odd else []
    errors += [
        FieldError(field=f"accelerators[{place}].key", detail=f"{key!r} stands twice; each has its own.")
        for place, key in _repeated([device.key for device in facts.accelerators])
    ] + [
        FieldError(field=f"volumes[{place}].name", detail=f"{name!r} stands twice; each has its own.")
        for place, name in _repeated([volume.name for volume in facts.volumes])
    ]
    if errors:
        raise Refused(Code.INVALID, f"{errors[0].field}: {errors[0].detail}", errors=errors)


def _repeated(names: Sequence[str]) -> Iterator[tuple[int, str]]:
    seen: set[str] = set()
    for place, name in enumerate(names):
        if name in seen:
            yield place, name
        seen.add(name)


def _news(node: Node, facts: Facts) -> Iterator[News]:
    """What changed about the node itself, compared with its facts before."""
    before: dict[str, Any] = node.facts or {}
    if node.hostname != facts.host.hostname:
        yield EventType.HOSTNAME_CHANGED, {"old": node.hostname, "new": facts.host.hostname}
    verified_before = before.get("agent", {}).get("tls_verify", True)
    if verified_before and not facts.agent.tls_verify:
        yield EventType.TLS_UNVERIFIED, {}
    elif facts.agent.tls_verify and not verified_before:
        yield EventType.TLS_VERIFIED, {}
    yield from _runtime_news(before.get("gpu_runtime"), facts.gpu_runtime)


def _runtime_news(before: dict[str, Any] | None, runtime: GpuRuntime) -> Iterator[News]:
    """A runtime in another state, failing otherwise, or with another driver; a first one only where it failed."""
    old_state = before.get("state") if before else None
    old_code = before.get("code") if before else None
    old_driver = before.get("driver_version", {}).get("value", "") if before else ""
    driver = runtime.driver_version.value or ""
    if before is None:
        changed = runtime.state == "failed"
    elif old_state != runtime.state:
        changed = True
    else:
        changed = old_code != runtime.code or bool(old_driver and driver and old_driver != driver)
    if changed:
        details: dict[str, Any] = {"old": old_state, "new": runtime.state}
        if runtime.code is not None or runtime.message:
            details |= {"code": runtime.code, "message": runtime.message}
        if driver != old_driver and driver:
            details |= {"old_driver": old_driver, "new_driver": driver}
        yield EventType.GPU_RUNTIME_CHANGED, details


def _write_node(node: Node, facts: Facts, said: str, now: datetime) -> None:
    node.facts = msgspec.to_builtins(facts)
    node.hostname = facts.host.hostname
    node.facts_digest, node.facts_at, node.want_facts = said, now, False
    node.save(update_fields=["facts", "hostname", "facts_digest", "facts_at", "want_facts"])


def _seen_again(node: Node, now: datetime) -> None:
    Node.objects.filter(pk=node.pk).update(facts_at=now, want_facts=False)


def _write_accelerators(node: Node, facts: Facts, now: datetime) -> list[News]:
    """Write what a working runtime shows, and tell what came, went or came back; a first look is one event."""
    if facts.gpu_runtime.state != "ready":
        return []
    known = {device.key: device for device in Accelerator.objects.filter(node=node)}
    shown = [_row(node, device, known.get(device.key), facts, now) for device in facts.accelerators]
    Accelerator.objects.bulk_create(
        shown, update_conflicts=True, unique_fields=["node", "key"], update_fields=_REFRESHED
    )
    keys = {device.key for device in shown}
    gone = [device for device in known.values() if device.key not in keys and device.missing_since is None]
    Accelerator.objects.filter(pk__in=[device.pk for device in gone]).update(missing_since=now)
    back = [known[key] for key in sorted(keys & known.keys()) if known[key].missing_since is not None]
    news: list[News] = [
        (EventType.ACCELERATOR_MISSING, _named(device) | {"last_seen_at": device.last_seen_at}) for device in gone
    ]
    news += [
        (EventType.ACCELERATOR_RETURNED, _named(device) | {"missing_since": device.missing_since}) for device in back
    ]
    new = [device for device in shown if device.key not in known]
    if known:
        news += [(EventType.ACCELERATOR_FOUND, _named(device)) for device in new]
    elif new:
        models = Counter(device.model or device.key for device in new)
        news.append((EventType.ACCELERATOR_FOUND, {"first_look": True, "count": len(new), "models": dict(models)}))
    return news


_REFRESHED = [
    "identity",
    "kind",
    "parent",
    "index",
    "uuid",
    "model",
    "pci_bus_id",
    "memory_bytes",
    "memory_model",
    "driver_version",
    "facts",
    "last_seen_at",
    "missing_since",
]


def _row(node: Node, device: AcceleratorFacts, known: Accelerator | None, facts: Facts, now: datetime) -> Accelerator:
    """A device as it shows itself; one that fell off the bus keeps the name and size by which people know it."""
    return Accelerator(
        node=node,
        key=device.key,
        identity=device.identity,
        kind=device.kind,
        parent=device.parent or "",
        index=device.index,
        uuid=_text(device.uuid) or (known.uuid if known else ""),
        model=_text(device.model) or (known.model if known else ""),
        pci_bus_id=_text(device.pci_bus_id) or (known.pci_bus_id if known else ""),
        memory_bytes=_known_bytes(device.memory_bytes, known),
        memory_model=device.memory_model,
        driver_version=_text(facts.gpu_runtime.driver_version),
        facts=msgspec.to_builtins(device),
        first_seen_at=now,
        last_seen_at=now,
        missing_since=None,
    )


def _known_bytes(reading: Reading[int], known: Accelerator | None) -> int | None:
    lost = reading.reason in {"lost", "error"}
    return known.memory_bytes if known and lost else reading.value


def _text(reading: Reading[str]) -> str:
    return reading.value or ""


def _named(device: Accelerator) -> dict[str, Any]:
    return {"key": device.key, "index": device.index, "model": device.model, "pci_bus_id": device.pci_bus_id}


def _write_volumes(node: Node, volumes: Sequence[VolumeFacts], now: datetime) -> None:
    """The named volumes as they are now; one that the agent no longer names is forgotten."""
    Volume.objects.filter(node=node).exclude(name__in=[volume.name for volume in volumes]).delete()
    rows = [
        Volume(
            node=node,
            name=volume.name,
            path=volume.path,
            filesystem=_text(volume.filesystem),
            total_bytes=volume.total_bytes.value,
            free_bytes=volume.free_bytes.value,
            facts=msgspec.to_builtins(volume),
            seen_at=now,
        )
        for volume in volumes
    ]
    refreshed = ["path", "filesystem", "total_bytes", "free_bytes", "facts", "seen_at"]
    Volume.objects.bulk_create(rows, update_conflicts=True, unique_fields=["node", "name"], update_fields=refreshed)
