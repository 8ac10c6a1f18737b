"""People at the admin pages: clients logged in as an operator, an auditor, a superuser or nobody in particular."""

import re
from datetime import UTC, datetime
from html import unescape
from typing import Any

from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from nodes.callers import AUDITORS, OPERATORS
from nodes.models import Node

PASSWORD = "correct horse battery staple"


def person(name: str, group: str | None = None, *, superuser: bool = False) -> User:
    """An account that may open the admin pages."""
    user = User.objects.create_user(name, password=PASSWORD, is_staff=True, is_superuser=superuser)
    if group is not None:
        user.groups.add(Group.objects.get_or_create(name=group)[0])
    return user


def at_the_pages(user: User) -> Client:
    """The person's browser."""
    client = Client()
    client.force_login(user)
    return client


def an_operator() -> Client:
    """A member of Operators."""
    return at_the_pages(person("mara", OPERATORS))


def an_auditor() -> Client:
    """A member of Auditors."""
    return at_the_pages(person("audrey", AUDITORS))


def an_outsider() -> Client:
    """Staff, but in neither group."""
    return at_the_pages(person("otto"))


def a_superuser() -> Client:
    """A superuser."""
    return at_the_pages(person("root", superuser=True))


def page_of(node: Node) -> str:
    """A node's page."""
    return reverse("admin:nodes_node_change", args=[node.pk])


def verb_of(node: Node, verb: str) -> str:
    """The page of a verb on a node."""
    return reverse(f"admin:nodes_node_{verb}", args=[node.pk])


def words(response: Any) -> str:
    """What a page says, without its tags and white space."""
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", response.content.decode(), flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def instant() -> datetime:
    """Now: pages read the clock, so what they show is set up against it."""
    return datetime.now(UTC)


def sent(client: Client, url: str, form: dict[str, str]) -> Any:
    """Open a page's form, fill it in and send it, as a browser does."""
    return client.post(url, form | {"form_nonce": client.get(url).context["form_nonce"]})
