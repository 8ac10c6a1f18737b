"""What a person sees whose form is refused before its view, by day and by night, on a screen and on a phone."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.test_pages import LOOKS
from tests.nodes import browsing

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PAPER = {"light": "rgba(0, 0, 0, 0)", "dark": "rgb(16, 24, 40)"}


@pytest.mark.parametrize(
    ("visit", "scheme"),
    [(look, look["scheme"]) for look in LOOKS],
    indirect=["visit"],
    ids=[f"{look['scheme']}-{look['width']}" for look in LOOKS],
)
def test_a_form_whose_cookie_is_gone_is_answered_with_remedies(visit: Visit, scheme: str) -> None:
    page = visit.page
    visit.go("/admin/login/")
    page.context.clear_cookies()
    page.fill("#id_username", "mara")
    page.fill("#id_password", browsing.PASSWORD)
    page.click("#login-form button[type=submit]")
    expect(page.get_by_role("heading", name="This form was not accepted")).to_be_visible()
    expect(page.get_by_text("Let the browser keep cookies")).to_be_visible()
    expect(page.locator("body")).to_have_css("background-color", PAPER[scheme])  # its stylesheet may be on its way yet
    page.wait_for_load_state()
    assert visit.overflow() <= 0
    (told,) = visit.troubles
    assert "403" in told  # the answer itself, and nothing beside it
    visit.troubles.clear()
    visit.log_in("mara")
