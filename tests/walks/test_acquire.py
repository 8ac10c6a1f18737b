"""A model arrives on a server: ordered by REST, watched, cut off, continued, verified, published, listed."""

import time
from collections.abc import Callable, Iterator

import pytest

from tests.hub import contents
from tests.hub.client import call
from tests.hub.hub import Hub
from tests.parts.agents import Agent
from tests.parts.control_plane import ControlPlane
from tests.parts.ports import until
from tests.walks import acquiring
from tests.walks.acquiring import CONNECTIONS, SEGMENT_BYTES

pytestmark = [pytest.mark.walk, pytest.mark.timeout(180)]
MIB = 1024 * 1024


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as made:
        yield made


def test_a_model_arrives_whole_though_its_agent_is_killed_in_the_middle(
    plane: ControlPlane, agent: Callable[..., Agent], hub: Hub
) -> None:
    repo = hub.repo("org/llama", contents.model(112 * MIB, shards=2, seed=1))
    size = sum(file.size for file in repo.files().values())
    hub.cdn.bytes_per_second = 8 * MIB  # the first eight segments are whole after 2 s
    one, root = acquiring.server(plane, agent, hub)
    before = acquiring.artifacts(plane, one)
    job = acquiring.order(plane, root, repo, reason="the walk")
    assert acquiring.pinned(plane, job, one) == repo.sha
    until(lambda: 0 < (acquiring.job(plane, job)["progress"] or {}).get("bytes_done", 0) < size, "progress is seen")
    acquiring.arrived(hub, int(size * 0.78))
    one.kill()
    killed_at, sent_before = time.monotonic(), hub.sent()
    assert before == acquiring.artifacts(plane, one) == []
    hub.cdn.bytes_per_second = None
    one.start()
    done = acquiring.ended(plane, job, one)

    assert (done["commit"], done["revision"]) == (repo.sha, "main")
    assert done["progress"]["bytes_done"] == done["progress"]["bytes_total"] == size
    assert done["progress"]["files_done"] == len(repo.files())
    place = acquiring.assert_published(one, repo, repo.sha)
    assert hub.sent() - size <= CONNECTIONS * SEGMENT_BYTES
    assert sent_before > size // 2
    assert acquiring.arrived_for_good(hub, killed_at)
    assert acquiring.asked_again(hub, killed_at) == []
    assert list((acquiring.folder(one) / ".partial").glob("*")) == []

    (artifact,) = acquiring.artifacts(plane, one)
    assert (artifact["state"], artifact["commit"], artifact["bytes"]) == ("published", repo.sha, size)
    assert artifact["path"] == str(place)
    told = [event["type"] for event in plane.events(node=one.node_id) if event["type"].startswith(("job", "art"))]
    begun = ["job.ordered", "job.started", "job.pinned", "job.started"]  # once for each process
    assert sorted(told) == sorted([*begun, "artifact.published", "job.succeeded"])
    assert told[:4] == begun

    assert "Signature=" not in one.log + plane.log

    read = call(hub, one.folder / "home", "get_local_safetensors_metadata", path=str(place))
    assert "layers.1.weight" in read.answer
    checked = call(hub, one.folder / "home", "verify_repo_checksums", repo_id="org/llama", local_dir=str(place))
    assert "mismatches=[], missing_paths=[], extra_paths=['manifest.json']" in checked.answer
