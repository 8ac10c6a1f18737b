"""How much a node may add to the history by itself: an hour's worth at once, and no faster than that in the long run.

The history is never cut, so whoever holds one node's credential must not be able to fill it. What a node owes is one
date on its row: the instant at which all that it told of late is paid off. Each counted event moves it by the hour's
share of one event, and time does the rest. Nothing is counted where nothing is told, so a plain beat knows none of
this; and what an operator's order leads to is bounded by that order, and is not counted.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import DateTimeField, DurationField, ExpressionWrapper, F, Value
from django.db.models.functions import Coalesce, Greatest

from nodes.models import Node

HOUR = timedelta(hours=1)
RESERVE = HOUR / 4
"""What only the comings and goings of an agent may take: they are heard whatever else it told."""


def of_one() -> timedelta:
    """What one event costs."""
    return HOUR / settings.NODE_HISTORY_PER_HOUR


def spend(node_id: UUID, events: int, *, now: datetime) -> None:
    """Note that a node made the history longer by so many events."""
    instant = Value(now, output_field=DateTimeField())
    since = Greatest(Coalesce(F("history_owed_until"), instant), instant)
    cost = Value(events * of_one(), output_field=DurationField())
    owed_until = ExpressionWrapper(since + cost, output_field=DateTimeField())
    Node.objects.filter(pk=node_id).update(history_owed_until=owed_until)


def wait(node: Node, *, now: datetime, reserve: timedelta = timedelta()) -> timedelta | None:
    """How long until the node may make another event; None where it may."""
    if node.history_owed_until is None:
        return None
    over = node.history_owed_until + of_one() - now - HOUR - reserve
    return over if over > timedelta() else None
