"""What people do at the pages, in a real browser: log in, enroll, revoke, look at a node by day and by night."""

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from enrollment.models import EnrollmentToken
from nodes import telemetry
from nodes.models import ControlPlane, Node
from tests.browser.conftest import Visit
from tests.nodes.browsing import instant, page_of, verb_of
from tests.nodes.hearing import Agent, a_node
from tests.nodes.publishing import facts, gpu, publish, sample, unknown, volume

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LOOKS = [{"scheme": scheme, "width": width} for scheme in ("light", "dark") for width in (1400, 420)]


@pytest.fixture
def node(transactional_db: None) -> Node:
    """A node with all that a page can show, under names that would be markup."""
    now = instant()
    ControlPlane.objects.create(id=1, swept_at=now)
    node = a_node("<script>alert(1)</script>" + "x" * 200, role="primary-inference", labels={"site": "office"})
    Agent(node).beat(now)
    gpus = [gpu(0), gpu(1, power_limit_watts=unknown("denied", 4)), gpu(2, kind="mig", parent="GPU-0000")]
    publish(node, facts(gpus, volumes=[volume("state"), volume("artifacts")], tls_verify=False), now)
    for minutes in range(20, 0, -1):
        at = now - timedelta(minutes=minutes)
        telemetry.keep(node.pk, sample(at, busy=50 + minutes), now=at)
    return node


def test_a_wrong_password_is_told_and_the_right_one_leads_home(visit: Visit) -> None:
    visit.go("/admin/login/")
    visit.page.fill("#id_username", "mara")
    visit.page.fill("#id_password", "wrong")
    visit.page.click("#login-form button[type=submit]")
    expect(visit.page.get_by_text("Please enter the correct username")).to_be_visible()
    visit.log_in("mara")
    expect(visit.page.get_by_text("No node yet: enroll one")).to_be_visible()


def test_an_operator_enrolls_sees_the_token_once_and_revokes_it(visit: Visit) -> None:
    page = visit.page
    visit.log_in("mara")
    visit.go("/admin/nodes/node/")
    page.get_by_role("link", name="Enroll node").first.click()
    page.fill("#id_display_name", "server01")
    page.fill("#id_labels", "site=office")
    page.get_by_role("button", name="Create enrollment token").click()
    secret = page.locator("#secret").inner_text()
    assert secret.startswith("mfe_")
    assert secret in page.locator("#exports").inner_text()
    expect(page.locator("[data-until]")).to_contain_text("in 14 min")
    page.locator("[data-copy=secret]").click()
    expect(page.locator("[data-copy=secret]")).to_contain_text("Copied")

    page.get_by_role("link", name="Enrollment tokens").click()
    assert secret not in page.content()
    page.get_by_role("link", name="Revoke").click()
    page.fill("#id_reason", "typo")
    page.get_by_role("button", name="Revoke").click()
    expect(page.locator("#result_list")).to_contain_text("revoked")
    assert EnrollmentToken.objects.get().revoked_at is not None


def test_a_verb_asks_first_and_its_word_of_success_is_shown(visit: Visit, node: Node) -> None:
    page = visit.page
    visit.log_in("mara")
    visit.go(page_of(node))
    page.get_by_role("link", name="Disable").click()
    page.fill("#id_reason", "fan replacement")
    page.get_by_role("button", name="Disable").click()
    page.wait_for_url(f"**{page_of(node)}")
    expect(page.locator('[data-flag="disabled"]')).to_contain_text("fan replacement")
    assert not Node.objects.get().enabled


def test_an_auditor_is_offered_no_verb(visit: Visit, node: Node) -> None:
    visit.log_in("audrey")
    visit.go(page_of(node))
    expect(visit.page.locator("main, #main")).to_contain_text("Accelerators")
    assert visit.page.locator(".mf-verbs").count() == 0
    visit.go("/admin/nodes/auditevent/")
    assert visit.page.get_by_role("link", name="CSV").is_visible()


@pytest.mark.parametrize("visit", LOOKS, indirect=True, ids=lambda look: f"{look['scheme']}-{look['width']}")
def test_every_page_fits_its_window_by_day_and_by_night(visit: Visit, node: Node) -> None:
    visit.log_in("mara")
    paths = [
        "/admin/",
        "/admin/nodes/node/",
        page_of(node),
        f"{page_of(node)}?span=30d",
        verb_of(node, "edit"),
        "/admin/enrollment/enrollmenttoken/add/",
        "/admin/enrollment/enrollmenttoken/",
        "/admin/enrollment/apikey/",
        "/admin/auth/user/",
        "/admin/nodes/auditevent/",
        "/admin/nodes/auditevent/1/change/",
    ]
    too_wide = {}
    for path in paths:
        visit.go(path)
        if visit.overflow() > 0:
            too_wide[path] = visit.overflow()
    assert too_wide == {}


def test_the_theme_follows_the_system(visit: Visit, node: Node) -> None:
    visit.log_in("mara")
    visit.go(page_of(node))
    paper = "getComputedStyle(document.querySelector('.mf-card')).backgroundColor"
    by_day = visit.page.evaluate(paper)
    visit.page.emulate_media(color_scheme="dark")
    visit.page.reload()
    assert visit.page.evaluate(paper) != by_day


def test_a_nodes_page_stays_fresh_by_itself(visit: Visit, node: Node) -> None:
    visit.log_in("mara")
    visit.page.add_init_script("const slow = setInterval; window.setInterval = (f, ms) => slow(f, Math.min(ms, 300));")
    visit.go(page_of(node))
    Node.objects.update(enabled=False, enabled_reason="changed behind its back")
    expect(visit.page.locator('[data-flag="disabled"]')).to_contain_text("changed behind its back")


def test_a_page_that_cannot_be_refreshed_says_since_when(visit: Visit, node: Node) -> None:
    visit.log_in("mara")
    visit.page.add_init_script("const slow = setInterval; window.setInterval = (f, ms) => slow(f, Math.min(ms, 300));")
    visit.go(page_of(node))
    visit.page.route("**/admin/**", lambda route: route.abort())
    expect(visit.page.get_by_text("Not refreshed for")).to_be_visible()
    visit.troubles[:] = [trouble for trouble in visit.troubles if "ERR_FAILED" not in trouble]


def test_the_values_stand_under_the_pointer(visit: Visit, node: Node) -> None:
    visit.log_in("mara")
    visit.go(page_of(node))
    picture = visit.page.locator(".mf-canvas").first
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    assert box is not None
    visit.page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 20)
    expect(picture.locator(".mf-tip")).to_contain_text("GPU 0:")


def test_the_filters_open_and_narrow(visit: Visit, node: Node) -> None:
    page = visit.page
    visit.log_in("mara")
    visit.go("/admin/nodes/node/")
    page.get_by_text("Filters").first.click()
    page.locator("label", has_text="Offline").first.click()
    page.get_by_role("button", name="Apply Filters").click()
    page.wait_for_url("**liveness=offline**")
    expect(page.get_by_text("No results found")).to_be_visible()
