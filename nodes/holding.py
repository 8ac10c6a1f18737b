"""A node that tells more than the history takes of one is held back: told once, shown, and let go by itself.

What would make more history is answered 429 with Retry-After, before anything changes, so that nothing is left out: the
agent tells it later. Beats and goodbyes are never refused for it; what they change is then counted instead of told one
by one, and the count stands in the event that says the node was let go.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from agent.protocol import Code
from nodes import allowance
from nodes.audit import record, record_uncounted
from nodes.callers import SYSTEM, NodeCaller, Refused
from nodes.event_types import EventType
from nodes.models import Node

BATCH = 500


def refuse(node: Node, *, by: NodeCaller, now: datetime) -> Refused | None:
    """The refusal of a word that could make history, where the node told too much of late; None where it may speak.

    To be raised once the caller's transaction, which holds the node's row, is committed: it notes the holding back.
    """
    wait = allowance.wait(node, now=now)
    if wait is None:
        return None
    _note(node, by, now)
    detail = (
        f"This node changed something more than {settings.NODE_HISTORY_PER_HOUR} times in an hour, and each change "
        "stays in the history for good. Tell it again when Retry-After says so; beats are heard meanwhile."
    )
    return Refused(Code.THROTTLED, detail, retry_after=wait)


def tell(type: EventType, *, by: NodeCaller, about: Node, at: datetime, **details: Any) -> None:
    """Record what a contact changed, in the caller's transaction; where the node told too much of late, count it."""
    if allowance.wait(about, now=at, reserve=allowance.RESERVE) is None:
        record(type, by=by, about=about, at=at, **details)
        return
    _note(about, by, at)
    untold: dict[str, int] = about.history_untold or {}
    about.history_untold = untold | {type.value: untold.get(type.value, 0) + 1}
    about.save(update_fields=["history_untold"])


def _note(node: Node, by: NodeCaller, now: datetime) -> None:
    """Said once for as long as it lasts."""
    if node.held_back_at is not None:
        return
    node.held_back_at = now
    first = Node.objects.filter(pk=node.pk, held_back_at=None).update(held_back_at=now)
    if first:
        most = settings.NODE_HISTORY_PER_HOUR
        record_uncounted(EventType.NODE_HELD_BACK, by=by, about=node, at=now, events_per_hour=most)


def let_go(*, now: datetime) -> int:
    """Let go of the nodes that owe nothing any more; how many. Called now and then by the schedule."""
    over = Node.objects.filter(held_back_at__isnull=False, history_owed_until__lte=now)
    keys = list(over.order_by("pk").values_list("pk", flat=True)[:BATCH])
    return sum(_let_go(key, now) for key in keys)


def _let_go(key: UUID, now: datetime) -> bool:
    with transaction.atomic():
        found = Node.objects.select_for_update().filter(pk=key, held_back_at__isnull=False)
        node = found.filter(history_owed_until__lte=now).first()
        if node is None:
            return False
        told = {"since": node.held_back_at, "untold": node.history_untold or {}}
        Node.objects.filter(pk=key).update(held_back_at=None, history_untold=None)
        record(EventType.NODE_LET_GO, by=SYSTEM, about=node, at=node.history_owed_until or now, **told)
    return True
