"""What operators do about models beyond ordering: cancel, try again, verify, remove; and roots that go wrong."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from agent.acquire.places import MARKER
from agent.volumes import PROBE_NAME
from tests.hub import contents
from tests.hub.contents import weights
from tests.hub.faults import Fault
from tests.hub.hub import Hub
from tests.parts import disks
from tests.parts.agents import Agent
from tests.parts.control_plane import ControlPlane
from tests.parts.ports import until
from tests.walks import acquiring
from tests.walks.journey import join, told

pytestmark = [pytest.mark.walk, pytest.mark.timeout(180)]
MIB = 1024 * 1024


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as made:
        yield made


def test_a_job_cancelled_in_the_middle_stops_and_tried_again_goes_on_where_it_stopped(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    repo = hub.repo("org/model", contents.model(24 * MIB, shards=4, seed=1))
    size = sum(file.size for file in repo.files().values())
    hub.cdn.bytes_per_second = MIB
    one, root = acquiring.server(plane, agent, hub)
    job = acquiring.order(plane, root, repo)
    acquiring.pinned(plane, job, one)
    acquiring.arrived(hub, 16 * MIB)
    plane.post(f"/api/v1/admin/jobs/{job['id']}/cancel", reason="not now")
    acquiring.ended(plane, job, one, "cancelled")
    sent = hub.sent()
    assert sent < size
    half_done = acquiring.folder(one) / ".partial" / str(job["id"])
    shown = f"/api/v1/admin/storage-roots/{root['id']}"
    kept = until(lambda: plane.get(shown)["capacity"]["partial_bytes"], f"what is kept is told; {one.log[-1500:]}")
    assert 12 * MIB <= int(str(kept)) < size + MIB
    assert half_done.exists()
    assert acquiring.artifacts(plane, one) == []
    assert not (acquiring.folder(one) / "models").exists()
    assert hub.sent() == sent
    hub.cdn.bytes_per_second = None
    plane.post(f"/api/v1/admin/jobs/{job['id']}/retry", reason="now")
    acquiring.ended(plane, job, one)
    acquiring.assert_published(one, repo, repo.sha)
    # What was on the line when the job was cancelled had left the Hub and comes again, and nothing else does.
    assert hub.sent() <= size + acquiring.CONNECTIONS * 2 * MIB
    until(lambda: plane.get(shown)["capacity"]["partial_bytes"] == 0, f"nothing is kept now; {one.log[-1500:]}")


def test_a_flipped_byte_is_found_mended_by_ordering_again_and_the_snapshot_is_removed(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    repo = hub.repo("org/model", contents.model(2 * MIB, seed=2))
    one, root = acquiring.server(plane, agent, hub)
    acquiring.ended(plane, acquiring.order(plane, root, repo), one)
    place = acquiring.assert_published(one, repo, repo.sha)
    (artifact,) = acquiring.artifacts(plane, one)

    def verify() -> acquiring.Row:
        ordered = plane.post(f"/api/v1/admin/artifacts/{artifact['id']}/verify")
        return acquiring.ended(plane, ordered, one)

    assert verify()["verified"]["damaged"] == []
    damaged = "model-00002-of-00002.safetensors"
    (place / damaged).chmod(0o644)
    with (place / damaged).open("r+b") as file:
        file.seek(MIB)
        file.write(b"\xff\x00\xff\x00")
    assert verify()["verified"]["damaged"] == [damaged]
    (found,) = acquiring.artifacts(plane, one)
    assert (found["state"], found["damaged"]) == ("damaged", [damaged])

    sent = hub.sent()
    acquiring.ended(plane, acquiring.order(plane, root, repo), one)
    acquiring.assert_published(one, repo, repo.sha)
    assert hub.sent() - sent == repo.files()[damaged].size, "the other files were whole"
    (found,) = acquiring.artifacts(plane, one)
    assert (found["id"], found["state"]) == (artifact["id"], "published")

    beside = acquiring.folder(one) / "models/org/other.txt"
    beside.write_text("not ours")
    acquiring.ended(plane, plane.post(f"/api/v1/admin/artifacts/{artifact['id']}/remove", reason="old"), one)
    assert not place.exists()
    assert beside.read_text() == "not ours"
    assert acquiring.artifacts(plane, one) == []
    (gone,) = acquiring.artifacts(plane, one, state="removed")
    assert gone["id"] == artifact["id"]
    told(plane, one, "artifact.damaged")
    told(plane, one, "artifact.removed")


def test_wrong_bytes_end_in_quarantine_and_the_next_attempt_brings_the_right_ones(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    repo = hub.repo("org/model", contents.model(2 * MIB, seed=3))
    one, root = acquiring.server(plane, agent, hub)
    wrong = "model-00001-of-00002.safetensors"
    hub.fault("cdn", Fault(flip=(MIB,)), file=wrong)
    job = acquiring.order(plane, root, repo)
    (event,) = told(plane, one, "artifact.file_quarantined")
    assert wrong in str(event)
    (kept,) = [p for p in (one.folder / "quarantine").rglob("*") if p.is_file() and p.suffix != ".json"]
    assert kept.stat().st_size == 2 * MIB
    waiting = until(lambda: (found := acquiring.job(plane, job))["not_before"] and found, "it waits")
    assert isinstance(waiting, dict)
    assert waiting["failure"]["code"] == "verification_failed"
    hub.mend()
    now(plane, job)
    acquiring.ended(plane, job, one)
    acquiring.assert_published(one, repo, repo.sha)


def now(plane: ControlPlane, job: acquiring.Row) -> None:
    """The job's pause is over."""
    plane.sql(f"UPDATE artifacts_job SET not_before = created_at WHERE repo_id = '{job['repo_id']}'")  # noqa: S608


@pytest.mark.parametrize("how", ["an empty folder in its place", "its disk unmounted"])
def test_a_root_that_is_not_what_was_approved_takes_no_byte_until_it_is_back(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub, tmp_path: Path, how: str
) -> None:
    """Field case 59."""
    repo = hub.repo("org/model", {"model.safetensors": weights(MIB)})
    one = join(plane, agent, HF_ENDPOINT=hub.url)
    folder = acquiring.folder(one)
    disk = tmp_path / "disk"
    disk.mkdir()
    with disks.again(disk, folder) if "unmounted" in how else nullcontext():
        root = acquiring.root(plane, one)
        if "unmounted" in how:
            disks.unmount(folder)
        else:
            folder.rename(disk)
            folder.mkdir()
        job = acquiring.order(plane, root, repo)
        ended = acquiring.ended(plane, job, one, "failed")
        assert ended["failure"]["code"] == "root_unverified"
        acquiring.root_in(plane, root, "unverified", one)
        assert list(folder.iterdir()) == []
        assert hub.of("cdn", "resolve") == []
        refused = plane.call("POST", "/api/v1/admin/jobs", {"root_id": root["id"], "repo_id": repo.id})
        assert (refused.status_code, refused.json()["code"]) == (409, "root_unverified")
    with disks.again(disk, folder):
        plane.post(f"/api/v1/admin/storage-roots/{root['id']}/approve", reason="mounted again")
        acquiring.root_in(plane, root, "verified", one)
        plane.post(f"/api/v1/admin/jobs/{job['id']}/retry", reason="mounted again")
        acquiring.ended(plane, job, one)
        acquiring.assert_published(one, repo, repo.sha)


def test_a_disk_that_fills_up_ends_the_job_with_numbers_and_it_goes_on_when_room_is_made(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    """Field case 61."""
    repo = hub.repo("org/model", contents.model(8 * MIB, shards=4, seed=6))
    size = sum(file.size for file in repo.files().values())
    hub.cdn.bytes_per_second = MIB
    one = join(plane, agent, HF_ENDPOINT=hub.url)
    with disks.memory(acquiring.folder(one), 48 * MIB) as disk:
        root = acquiring.root(plane, one)
        job = acquiring.order(plane, root, repo)
        acquiring.arrived(hub, 8 * MIB)
        filler = disks.fill(disk)
        hub.cdn.bytes_per_second = None
        ended = acquiring.ended(plane, job, one, "failed")
        assert ended["failure"]["code"] == "insufficient_capacity"
        assert ended["failure"]["numbers"]["free_bytes"] < MIB
        assert not (disk / "models").exists()
        assert any((disk / ".partial" / str(job["id"]) / "parts").iterdir())
        filler.unlink()
        plane.post(f"/api/v1/admin/jobs/{job['id']}/retry", reason="there is room again")
        acquiring.ended(plane, job, one)
        acquiring.assert_published(one, repo, repo.sha)
        assert hub.sent() < 2 * size
        assert len(hub.of("resolve", file="config.json")) == 1  # what was whole before the disk was full came once


def test_preflight_tells_what_would_come_and_writes_nothing(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    repo = hub.repo("org/model", contents.model(2 * MIB, seed=4))
    one, root = acquiring.server(plane, agent, hub)
    done = acquiring.ended(plane, acquiring.order(plane, root, repo, preflight_only=True), one)
    assert done["commit"] == repo.sha
    assert done["preflight"]["bytes"] == sum(file.size for file in repo.files().values())
    assert (done["preflight"]["files"], done["preflight"]["largest_bytes"]) == (len(repo.files()), 2 * MIB)
    assert (done["preflight"]["fits"], done["preflight"]["gated"]) == (True, False)
    assert {path.name for path in acquiring.folder(one).iterdir()} - {PROBE_NAME} == {MARKER}
    assert hub.of("cdn", "resolve") == []


def test_what_cannot_fit_ends_with_the_numbers(plane: ControlPlane, agent: Callable[..., Agent], hub: Hub) -> None:
    repo = hub.repo("org/model", {"model.safetensors": weights(3 * MIB)})
    one, root = acquiring.server(plane, agent, hub)
    tight = acquiring.root(plane, one, "tight", ceiling_bytes=2 * MIB)
    ended = acquiring.ended(plane, acquiring.order(plane, tight, repo), one, "failed")
    assert ended["failure"]["code"] == "insufficient_capacity"
    assert ended["failure"]["numbers"]["room_bytes"] == 2 * MIB
    assert hub.of("cdn", "resolve") == []
    acquiring.ended(plane, acquiring.order(plane, root, repo), one)


@pytest.mark.parametrize("token", ["", "hf_not_accepted"], ids=["no token", "token not accepted"])
def test_a_gated_model_ends_with_what_to_do(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub, token: str
) -> None:
    repo = hub.repo("org/gated", contents.model(MIB, seed=5), gated="listed")
    variables = {"MODELFORGE_HF_TOKEN": hub.token(token)} if token else {}
    one, root = acquiring.server(plane, agent, hub, **variables)
    ended = acquiring.ended(plane, acquiring.order(plane, root, repo), one, "failed")
    assert ended["failure"]["code"] == ("gated_not_accepted" if token else "gated_no_token")
    if token:
        hub.token(token, accepted=[repo.id])
        plane.post(f"/api/v1/admin/jobs/{ended['id']}/retry", reason="accepted")
        acquiring.ended(plane, ended, one)
        acquiring.assert_published(one, repo, repo.sha)
        assert hub.strangers_saw(token) == []
        assert token not in one.log + plane.log
