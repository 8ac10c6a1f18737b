"""What the templates say with: instants as ages, badges, a bar's width without inline style."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django import template
from django.template import Context
from django.utils.safestring import SafeString

from nodes import markup, wording

register = template.Library()


@register.simple_tag(takes_context=True)
def when(context: Context, at: datetime | None) -> SafeString | str:
    """An instant as seen from the page's ``now``."""
    return markup.when(at, context["now"]) if at is not None else wording.DASH


@register.simple_tag
def badge(text: str, tone: str, title: str = "") -> SafeString:
    """A state with a dot."""
    return markup.badge(text, tone, title)


@register.simple_tag
def chip(text: str, tone: str, title: str = "") -> SafeString:
    """A small label."""
    return markup.chip(text, tone, title)


@register.filter
def size(count: int | None) -> str:
    """Bytes in words."""
    return wording.size(count)


@register.filter
def labelled(line: Sequence[Any], headers: Sequence[str]) -> list[tuple[str, Any]]:
    """A table's row with the header of each value, which stands before it where the window is narrow."""
    return list(zip(headers, line, strict=False))


register.filter("event_label", wording.event_label)
register.filter("event_summary", wording.event_summary)


@register.filter
def percent(share: float | None) -> str:
    """A share as a whole number, for a bar."""
    return "0" if share is None else f"{min(max(share, 0), 100):.0f}"
