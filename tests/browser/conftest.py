"""The real Chromium before a real server: whatever its console complains of, or asks elsewhere, fails the test."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from django.db import connections
from playwright.sync_api import Browser, Page, sync_playwright
from pytest_django.live_server_helper import LiveServer

from nodes.callers import AUDITORS, OPERATORS
from tests.nodes import browsing
from tests.parts.chromium import launched

CONTENTS = "_test_serialized_contents"
"""What the migrations put into the database, kept on the connection by Django's test runner. Within a running loop
Django has other connection objects; without this on them each flush would make the content types anew, by new keys."""


@pytest.fixture(scope="package")
def chromium(django_db_setup: None) -> Iterator[Browser]:
    """Debian's Chromium; while it is open, playwright's event loop runs in this thread, which Django has to bear."""
    kept = {alias: getattr(connections[alias], CONTENTS, None) for alias in connections}
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        for alias, contents in kept.items():
            if contents is not None:
                setattr(connections[alias], CONTENTS, contents)
        browser = launched(playwright)
        yield browser
        browser.close()
        connections.close_all()


@dataclass
class Visit:
    """One person's window, and what went wrong in it."""

    page: Page
    server: str
    troubles: list[str] = field(default_factory=list)

    @property
    def home(self) -> tuple[str, ...]:
        """How every address begins that a page may ask."""
        return (self.server, "data:", "blob:")

    def note(self, is_trouble: bool, told: str) -> None:
        """Keep a trouble."""
        if is_trouble:
            self.troubles.append(told)

    def go(self, path: str) -> None:
        """Open a path of the server."""
        self.page.goto(self.server + path)

    def log_in(self, name: str) -> None:
        """By the login page."""
        self.go("/admin/login/")
        self.page.fill("#id_username", name)
        self.page.fill("#id_password", browsing.PASSWORD)
        self.page.click("#login-form button[type=submit]")
        self.page.wait_for_url("**/admin/")

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        width: int = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        return width


@pytest.fixture
def visit(chromium: Browser, live_server: LiveServer, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """A window before the live server, with an operator and an auditor who may log in."""
    browsing.person("mara", OPERATORS)
    browsing.person("audrey", AUDITORS)
    look = getattr(request, "param", {})
    context = chromium.new_context(
        viewport={"width": look.get("width", 1400), "height": 900}, color_scheme=look.get("scheme", "light")
    )
    visit = Visit(context.new_page(), live_server.url)
    page = visit.page
    page.on("console", lambda said: visit.note(said.type == "error", said.text))
    page.on("pageerror", lambda fault: visit.note(True, str(fault)))
    page.on("request", lambda asked: visit.note(not asked.url.startswith(visit.home), f"asked elsewhere: {asked.url}"))
    page.on("response", lambda answer: visit.note(answer.status >= 500, f"{answer.status} {answer.url}"))
    yield visit
    context.close()
    assert visit.troubles == []
