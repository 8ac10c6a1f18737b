"""What people do at the pages of artifacts, in a real browser: register a folder, order, watch, cancel, look around."""

import pytest
from playwright.sync_api import expect

from artifacts.admin.subjects import page_of
from artifacts.models import Artifact, Job, StorageRoot
from nodes.models import ControlPlane, Node
from tests.artifacts.ordering import a_server
from tests.artifacts.showing import GIB, a_bad_file, a_job, a_root, an_artifact, progressed
from tests.browser.conftest import Visit
from tests.browser.test_pages import LOOKS
from tests.nodes import browsing
from tests.nodes.browsing import instant
from tests.nodes.hearing import Agent

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

EVIL = "<script>alert(1)</script>" + "x" * 150
SOONER = "const slow = setInterval; window.setInterval = (f, ms) => slow(f, Math.min(ms, 300));"


@pytest.fixture
def node(transactional_db: None) -> Node:
    """A server that was heard just now, and told its artifact volume."""
    now = instant()
    ControlPlane.objects.create(id=1, swept_at=now)
    node = a_server()
    Agent(node).beat(now)
    return node


@pytest.fixture
def root(node: Node) -> StorageRoot:
    """Its verified root."""
    return a_root(node, instant())


def test_a_folder_is_registered_from_the_nodes_page(visit: Visit, node: Node) -> None:
    page = visit.page
    visit.log_in("mara")
    visit.go(browsing.page_of(node))
    page.get_by_role("link", name="Register").click()
    expect(page.locator("#id_container_path")).to_have_value("/data/artifacts/models")
    page.fill("#id_host_path", "/mnt/user/models")
    page.fill("#id_reserve", "50 GiB")
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_text("is on Unraid's user share")).to_be_visible()
    visit.troubles[:] = [trouble for trouble in visit.troubles if "422" not in trouble]
    page.fill("#id_host_path", "/mnt/cache/models")
    page.get_by_role("button", name="Register").click()
    root = StorageRoot.objects.get()
    page.wait_for_url(f"**{page_of(root)}")
    expect(page.locator('[data-flag="pending"]')).to_contain_text("Not proven yet")
    assert root.reserve_bytes == 50 * GIB


def test_a_model_is_ordered_watched_and_cancelled(visit: Visit, root: StorageRoot) -> None:
    page = visit.page
    visit.log_in("mara")
    page.add_init_script(SOONER)
    visit.go(page_of(root))
    page.get_by_role("link", name="Order a model").click()
    page.fill("#id_repo_id", "org/model")
    page.get_by_role("button", name="Order").click()
    job = Job.objects.get()
    page.wait_for_url(f"**{page_of(job)}")
    expect(page.locator("#live")).to_contain_text("It waits.")

    Job.objects.filter(pk=job.pk).update(
        state="running", lease_id=job.pk, lease_expires_at=instant().replace(year=2100), **progressed(instant(), 0.97)
    )
    expect(page.locator(".mf-arrived")).to_contain_text("97 %")
    expect(page.locator(".mf-arrival")).to_contain_text("150 MiB/s")
    expect(page.locator(".mf-picture")).to_have_count(2)

    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("button", name="Cancel the job").click()
    expect(page.locator('[data-flag="stopping"]')).to_contain_text("Being cancelled")
    assert Job.objects.get().cancelled_by == "mara"


def test_an_artifact_is_found_by_the_sidebar_and_removed(visit: Visit, root: StorageRoot) -> None:
    an_artifact(root, instant())
    page = visit.page
    visit.log_in("mara")
    page.get_by_role("link", name="deployed_code Artifacts").click()
    page.get_by_role("link", name="org/model").click()
    page.locator("[data-copy=host-path]").click()
    expect(page.locator("[data-copy=host-path]")).to_contain_text("Copied")
    page.get_by_role("link", name="Remove").click()
    page.fill("#id_reason", "no longer used")
    page.get_by_role("button", name="Remove").click()
    job = Job.objects.get()
    page.wait_for_url(f"**{page_of(job)}")
    assert job.type == "artifact.remove.v1"


@pytest.mark.parametrize("visit", [{"width": 390}], indirect=True, ids=["390"])
def test_on_a_narrow_window_a_cards_table_is_cut_off_nowhere(visit: Visit, root: StorageRoot) -> None:
    now = instant()
    a_bad_file(root, now, a_job(root, now, state="failed"))
    a_job(root, now, state="running", repo_id="org/of-a-long-name-that-takes-its-room", **progressed(now))
    an_artifact(root, now)
    visit.log_in("mara")
    for path in (browsing.page_of(root.node), page_of(root)):
        visit.go(path)
        wide = "[...document.querySelectorAll('.mf-things')].map(t => t.scrollWidth - t.parentElement.clientWidth)"
        cut_off = visit.page.evaluate(wide)
        assert cut_off
        assert max(cut_off) <= 0


def test_an_auditor_is_offered_no_verb(visit: Visit, root: StorageRoot) -> None:
    now = instant()
    visit.log_in("audrey")
    for subject in (root, a_job(root, now), an_artifact(root, now)):
        visit.go(page_of(subject))
        expect(visit.page.locator("#live")).to_contain_text("History")
        assert visit.page.locator(".mf-verbs").count() == 0
    visit.go("/admin/artifacts/job/")
    assert visit.page.get_by_role("link", name="Order a model").count() == 0


@pytest.fixture
def everything(root: StorageRoot) -> list[str]:
    """Pages with all that they can show, under names that would be markup and are too long; their paths."""
    now = instant()
    node = root.node
    full = a_root(
        node, now, "deep/" * 30 + "end", host_path=f"/mnt/{EVIL}", state="unverified", fault="marker_missing",
        fault_detail=EVIL, free_bytes=GIB, ceiling_bytes=GIB,
    )  # fmt: skip
    runs = a_job(root, now, state="running", repo_id=EVIL, revision=EVIL, **progressed(now, 0.97))
    failed = a_job(
        full, now, state="failed", repo_id=EVIL, failure_code="insufficient_capacity", failure_detail=EVIL,
        failure_numbers={"needed_bytes": 9 * GIB, "free_bytes": GIB, "inodes_free": 3}, allow_patterns=[EVIL],
    )  # fmt: skip
    broken = an_artifact(full, now, repo_id=EVIL, state="damaged", damaged=[EVIL, "a.json"])
    a_job(full, now, state="succeeded", type="artifact.verify.v1", artifact=broken, verified={"damaged": [EVIL]})
    a_bad_file(full, now, failed, path=EVIL, location=EVIL)
    Node.objects.filter(pk=node.pk).update(display_name=EVIL)
    kinds = [StorageRoot, Job, Artifact]
    lists = [f"/admin/artifacts/{kind._meta.model_name}/" for kind in kinds]
    return [
        "/admin/",
        browsing.page_of(node),
        *lists,
        f"{lists[0]}add/?node={node.pk}",
        f"{lists[1]}add/?again={failed.pk}",
        *(page_of(subject) for subject in (root, full, runs, failed, broken)),
        f"{page_of(full).removesuffix('change/')}edit/",
        f"{page_of(broken).removesuffix('change/')}remove/",
    ]


@pytest.mark.parametrize("visit", LOOKS, indirect=True, ids=lambda look: f"{look['scheme']}-{look['width']}")
def test_every_page_fits_its_window_by_day_and_by_night(visit: Visit, everything: list[str]) -> None:
    visit.log_in("mara")
    too_wide = {}
    for path in everything:
        visit.go(path)
        if visit.overflow() > 0:
            too_wide[path] = visit.overflow()
    assert too_wide == {}
