"""From the registered folder to the listed artifact: the pages tell each step as the agent's words bring it about."""

from datetime import datetime, timedelta

import pytest
from django.test import Client

from agent import wire
from artifacts.admin.subjects import page_of
from artifacts.models import Artifact, Job, StorageRoot
from tests.artifacts.ordering import COMMIT, GIB, Worker, a_server, proof
from tests.nodes import browsing
from tests.nodes.browsing import instant, words

pytestmark = pytest.mark.django_db


@pytest.fixture
def now() -> datetime:
    """Pages read the clock, so what happens is dated against it."""
    return instant() - timedelta(minutes=1)


def test_a_model_s_way_is_told_page_by_page(now: datetime, api: Client) -> None:
    mara, node = browsing.an_operator(), a_server()
    agent = Worker(node)

    folder = {"node": str(node.pk), "container_path": "/data/artifacts/models", "host_path": "/mnt/cache/models"}
    mara.post(
        "/admin/artifacts/storageroot/add/", folder | {"purpose": "artifacts", "reserve": "10 GiB", "ceiling": ""}
    )
    root = StorageRoot.objects.get()
    assert "Approval waits for its agent" in words(mara.get(page_of(root)))
    agent.claim(now, types=[], proofs=[proof(root, approved=True)])
    assert "Free 600 GiB of 1000 GiB Reserve 10 GiB" in words(mara.get(page_of(root)))

    mara.post("/admin/artifacts/job/add/", {"root": str(root.pk), "repo_id": "org/model", "revision": "main"})
    job = Job.objects.get()
    given = agent.take(now)
    assert "Its agent has it, and has not told yet how much it is; heard" in words(mara.get(page_of(job)))
    for seconds, done in ((10, 2 * GIB), (20, 5 * GIB)):
        agent.tell(
            given, now + timedelta(seconds=seconds), commit=COMMIT, bytes_total=10 * GIB, bytes_done=done,
            bytes_fetched=done, files_total=3, files_done=1, bytes_per_second=300.0 * 2**20, eta_seconds=17.0,
        )  # fmt: skip
    page = mara.get(page_of(job))
    assert "50 % 5 GiB of 10 GiB heard 4" in words(page)
    assert f"Commit {COMMIT}" in words(page)
    assert [picture.unit for picture in page.context["pictures"]] == ["GiB", "MiB/s"]
    assert api.get(f"/api/v1/admin/storage-roots/{root.pk}").json()["capacity"]["reserved_bytes"] == 5 * GIB

    agent.publish(given, now + timedelta(seconds=30))
    artifact = Artifact.objects.get()
    assert "succeeded" in words(mara.get(page_of(job)))
    assert page_of(artifact) in mara.get(page_of(job)).content.decode()
    assert f"/mnt/cache/models/models/org/model/{COMMIT}" in words(mara.get(page_of(artifact)))
    assert [shown["repo_id"] for shown in api.get("/api/v1/artifacts").json()["results"]] == ["org/model"]

    mara.post(page_of(artifact).replace("change", "verify"), {})
    given = agent.take(now + timedelta(seconds=40))
    found = wire.Verified(files=3, bytes=10 * GIB, damaged=["model.safetensors"])
    agent.finish(given, now + timedelta(seconds=50), outcome="succeeded", verified=found)
    assert "model.safetensors" in words(mara.get(page_of(artifact)))
    assert "1 file changed or missing" in words(mara.get("/admin/"))


def test_a_failure_s_words_reach_the_page(now: datetime) -> None:
    mara, node = browsing.an_operator(), a_server()
    root = StorageRoot.objects.create(
        node=node, host_path="/mnt/m", container_path="/data/artifacts/m", reserve_bytes=0, state="verified",
        approve=False, approved_at=now, created_at=now, created_by="mara",
    )  # fmt: skip
    mara.post("/admin/artifacts/job/add/", {"root": str(root.pk), "repo_id": "org/model", "revision": "main"})
    agent = Worker(node)
    agent.fail(agent.take(now), "insufficient_capacity", now, numbers={"needed_bytes": 9 * GIB, "free_bytes": GIB})
    said = words(mara.get(page_of(Job.objects.get())))
    assert "because of insufficient_capacity" in said
    assert "Needed 9 GiB Free 1 GiB" in said


def test_a_preflight_s_answer_reaches_the_page(now: datetime) -> None:
    mara, node = browsing.an_operator(), a_server()
    root = StorageRoot.objects.create(
        node=node, host_path="/mnt/m", container_path="/data/artifacts/m", reserve_bytes=0, state="verified",
        approve=False, approved_at=now, created_at=now, created_by="mara",
    )  # fmt: skip
    order = {"root": str(root.pk), "repo_id": "org/model", "revision": "main", "preflight_only": "on"}
    mara.post("/admin/artifacts/job/add/", order)
    agent = Worker(node)
    answer = wire.Preflight(files=31, bytes=140 * GIB, fits=False, needed_bytes=200 * GIB, free_bytes=GIB)
    agent.finish(agent.take(now), now, outcome="succeeded", commit=COMMIT, preflight=answer)
    said = words(mara.get(page_of(Job.objects.get())))
    assert "It does not fit It needs 200 GiB, and 1 GiB are free." in said
    assert "Order it now" in said
