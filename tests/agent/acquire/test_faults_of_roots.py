"""A root that is no longer what was approved gets no byte: not before a job, and not from the next file on."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.acquire.terms import Failed
from tests.agent.acquire.acquiring import REPO, tree
from tests.agent.acquire.attempts import LIMITS, Ordered
from tests.agent.acquire.grounds import CHANGES, Once, approved
from tests.hub.contents import weights
from tests.hub.faults import Fault
from tests.hub.hub import Hub

FILES = {f"{number:02}.safetensors": weights(300_000, seed=number) for number in range(20)}


@pytest.mark.parametrize("name", CHANGES)
def test_before_a_job_no_byte_is_written(hub: Hub, tmp_path: Path, name: str) -> None:
    """Field cases 59 and 60."""
    repo = hub.repo(REPO, FILES)
    with approved(tmp_path) as server:
        CHANGES[name](server)
        before = tree(tmp_path)
        with pytest.raises(Failed) as failed:
            Ordered(hub, server.root, repo, still=server.still).run()
        assert failed.value.code == "root_unverified"
        assert failed.value.detail
        assert tree(tmp_path) == before
        assert hub.of("cdn", "resolve") == []


@pytest.mark.parametrize("name", CHANGES)
def test_in_the_middle_of_a_job_no_further_file_is_begun(hub: Hub, tmp_path: Path, name: str) -> None:
    repo = hub.repo(REPO, FILES)
    with approved(tmp_path) as server:
        change = Once(lambda: CHANGES[name](server))
        hub.fault("cdn", Fault(meanwhile=change), after=6)
        with pytest.raises(Failed) as failed:
            Ordered(hub, server.root, repo, still=server.still, limits=replace(LIMITS, open_files=3)).run()
        assert change.done.wait(20)
        assert failed.value.code == "root_unverified", "whatever the disk refused by then"
        assert len({request.file for request in hub.of("cdn")}) < len(FILES)
        assert not (tmp_path / "artifacts" / "models" / "models").exists()
        if "folder" in name or name == "a link":
            taken_its_place = server.root.resolve()
            assert list(taken_its_place.iterdir()) == []
        after = tree(tmp_path)
        with pytest.raises(Failed) as failed:
            Ordered(hub, server.root, repo, still=server.still).run()
        assert failed.value.code == "root_unverified"
        assert tree(tmp_path) == after


def test_the_root_as_it_was_approved_takes_the_snapshot(hub: Hub, tmp_path: Path) -> None:
    repo = hub.repo(REPO, FILES)
    with approved(tmp_path) as server:
        job = Ordered(hub, server.root, repo, still=server.still)
        assert job.run().outcome == "succeeded"
        assert job.told == [(repo.sha, 0)]
