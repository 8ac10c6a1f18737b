"""What a node's page shows: status, axes, flags, facts, accelerators, volumes, pictures, history and verbs."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse

from nodes.admin import hardware, samples
from nodes.admin.access import may_act
from nodes.admin.flags import flags_of, heart_of, liveness_of
from nodes.admin.fleet import fleet
from nodes.admin.rows import Button, Panel, Row
from nodes.audit import events
from nodes.liveness import Liveness
from nodes.models import Heartbeat, Node
from nodes.wording import DASH, exact, span

HISTORY_SHOWN = 50


PANELS: list[Callable[[Node, datetime], Panel]] = []
"""Filled by the apps above this one, which know of things that the registry does not."""


def find(object_id: str, now: datetime) -> Node | None:
    """The node with all its facts, or None."""
    try:
        key = UUID(object_id)
    except ValueError:
        return None
    return fleet(now).defer(None).filter(pk=key).first()


def context(node: Node, request: HttpRequest, now: datetime) -> dict[str, Any]:
    """Everything that the template needs."""
    facts: Mapping[str, Any] = node.facts or {}
    acting = may_act(request)
    panels = [panel(node, now) for panel in PANELS]
    flags = list(flags_of(node, now))
    devices = hardware.accelerators(node)
    chosen = samples.SPANS.get(request.GET.get("span", ""), samples.SPANS["1h"])
    listed = list(events().filter(node_id=node.pk)[: HISTORY_SHOWN + 1])
    return {
        "title": node.display_name,
        "trail": [("Compute nodes", reverse("admin:nodes_node_changelist")), (node.display_name, "")],
        "node": node,
        "heart": heart_of(node),
        "now": now,
        "liveness": liveness_of(node, now),
        "flags": flags,
        "may_act": acting,
        "verbs": _verbs(node) if acting else [],
        "status_rows": _status(node, heart_of(node), now),
        "service_rows": _service(node),
        "panels": panels,
        "identity_rows": _identity(node, facts),
        "host_rows": hardware.host(facts),
        "runtime_rows": hardware.runtime(facts),
        "accelerators": devices,
        "volumes": hardware.volumes(node),
        "pictures": samples.pictures(node, devices, chosen, now),
        "spans": [(key, span_.label, span_ is chosen) for key, span_ in samples.SPANS.items()],
        "span": chosen.label,
        "events": listed[:HISTORY_SHOWN],
        "more_events": len(listed) > HISTORY_SHOWN,
        "audit_url": f"{reverse('admin:nodes_auditevent_changelist')}?{urlencode({'node': str(node.pk)})}",
    }


def _verbs(node: Node) -> list[Button]:
    if node.retired_at is not None:
        return []

    def to(verb: str) -> str:
        return reverse(f"admin:nodes_node_{verb}", args=[node.pk])

    buttons = [Button("Edit", to("edit"), "edit")]
    if node.identity_conflict_at is not None:
        buttons.append(Button("Clear conflict", to("clear_conflict"), "done_all"))
    if node.enabled:
        buttons.append(Button("Disable", to("disable"), "pause_circle"))
    else:
        buttons.append(Button("Enable", to("enable"), "play_circle"))
    buttons.append(Button("Retire", to("retire"), "archive", danger=True))
    return buttons


def _status(node: Node, heart: Heartbeat | None, now: datetime) -> list[Row]:
    if heart is None or heart.last_heard_at is None:
        return [Row("Last heartbeat", "never"), Row("Enrolled", at=node.enrolled_at)]
    rows = [Row("Last heartbeat", at=heart.last_heard_at)]
    if node.retired_at is not None:  # nothing is awaited any more
        return rows
    state = heart.seen_at(now)
    if heart.stopped_at is not None:
        rows.append(Row("Stopped as planned", heart.stop_reason, at=heart.stopped_at))
    elif state is Liveness.ONLINE and heart.online_since is not None:
        rows.append(Row("Online since", at=heart.online_since))
    if state is Liveness.ONLINE and heart.stale_at is not None:
        rows.append(Row("Stale unless heard", at=heart.stale_at))
    elif heart.stale_at is not None and heart.stopped_at is None:
        rows.append(Row("Stale since", at=heart.stale_at))
    if heart.offline_at is not None and heart.stopped_at is None:
        rows.append(Row("Offline since" if state is Liveness.OFFLINE else "Offline unless heard", at=heart.offline_at))
    rows.append(Row("Told to beat every", f"{heart.interval_seconds:g} s"))
    skew = heart.clock_skew_seconds
    rows.append(
        Row(
            "Clock skew",
            DASH
            if skew is None
            else "0.0 s"
            if abs(skew) < 0.05  # rounded, it has no sign
            else f"{skew:+.1f} s"
            if abs(skew) < 60
            else f"{'+' if skew > 0 else '−'}{_span(skew)}",
            "The agent's clock less ours, travel time included",
        )
    )
    rows.append(Row("Boot id", str(heart.boot_id or DASH), f"Beat number {heart.sequence} of this process"))
    return rows


def _span(seconds: float) -> str:
    return span(datetime.resolution * int(abs(seconds) * 1_000_000))


def _service(node: Node) -> list[Row]:
    if node.retired_at is not None:
        return [Row("Retired", at=node.retired_at), Row("Role", node.role or DASH)]
    rows = [Row("Enabled", "yes" if node.enabled else "no", node.enabled_reason)]
    if node.enabled_reason:
        rows.append(Row("Reason", node.enabled_reason))
    rows.append(Row("Role", node.role or DASH))
    return rows


def _identity(node: Node, facts: Mapping[str, Any]) -> list[Row]:
    agent: Mapping[str, Any] = facts.get("agent") or {}
    return [
        Row("Node id", str(node.pk)),
        Row("Hostname", node.hostname),
        Row("Address", node.address or DASH, "Where its present boot was first heard from"),
        Row("Agent version", node.agent_version or DASH),
        Row("Protocol", DASH if node.protocol_version is None else str(node.protocol_version)),
        Row("TLS", _tls(agent)),
        Row("Through a proxy", "yes" if agent.get("proxy") else "no") if agent else Row("Through a proxy", DASH),
        hardware.state_folder(node),
        Row("Enrolled", at=node.enrolled_at, title=exact(node.enrolled_at)),
        Row("Facts published", at=node.facts_at) if node.facts_at else Row("Facts published", "not yet"),
    ]


def _tls(agent: Mapping[str, Any]) -> str:
    """How the agent speaks to us, by its own facts."""
    ca, verified = agent.get("ca"), agent.get("tls_verify")
    if ca == "none":
        return "not used (plain HTTP)"
    if verified is None:
        return DASH
    named = {"system": "system store", "file": "private CA file"}.get(str(ca), "")
    return f"verified{', ' if named else ''}{named}" if verified else "not verified"
