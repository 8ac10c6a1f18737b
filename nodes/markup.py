"""Small pieces of HTML that several pages share; whatever comes from a node is escaped here."""

from datetime import datetime

from django.utils.html import format_html
from django.utils.safestring import SafeString

from nodes.wording import exact, relative


def when(at: datetime, now: datetime) -> SafeString:
    """An instant, relative, with the exact UTC in the tooltip."""
    return format_html(
        '<time class="mf-time" datetime="{}" title="{}">{}</time>', at.isoformat(), exact(at), relative(at, now)
    )


def badge(text: str, tone: str, title: str = "") -> SafeString:
    """A state with a dot, for what a node is."""
    return format_html('<span class="mf-badge mf-{}" title="{}"><i></i>{}</span>', tone, title, text)


def chip(text: str, tone: str, title: str = "") -> SafeString:
    """A small label, for what is odd about it."""
    return format_html('<span class="mf-chip mf-{}" title="{}">{}</span>', tone, title, text)
