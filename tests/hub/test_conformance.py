"""The stand-in Hub is true: the real Hub library fetches from it byte by byte, and understands how it says no."""

from pathlib import Path
from typing import Any

import pytest
import requests
import trustme

from tests.hub import contents
from tests.hub.client import Said, call
from tests.hub.contents import Generated, weights
from tests.hub.faults import Fault
from tests.hub.hub import Hub
from tests.hub.repositories import MASK, Files, Repository

ORDINARY: Files = {
    "config.json": b'{"model_type": "llama"}',
    "README.md": b"# A model\n",
    "empty.txt": b"",
    "deeper/down/notes.txt": b"notes",
    "model.safetensors": weights(3_000_001, seed=1),
    "deeper/tokenizer.model": Generated(300_000, seed=2),
    "names with spaces and ünïcode.json": b"{}",
}


def download(hub: Hub, folder: Path, **arguments: Any) -> Said:
    """``snapshot_download`` into an empty folder."""
    target = folder / "snapshot"
    return call(hub, folder / "home", "snapshot_download", local_dir=str(target), **arguments)


def assert_right(repo: Repository, commit: str, folder: Path) -> None:
    """Exactly the commit's files lie there, with exactly its bytes."""
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".cache" not in path.parts
    }
    assert found == {path: contents.read(file.content) for path, file in repo.files(commit).items()}


@pytest.mark.parametrize("by", ["branch", "commit", "tag"])
def test_the_real_library_fetches_a_snapshot_byte_by_byte(hub: Hub, tmp_path: Path, by: str) -> None:
    repo = hub.repo("org/model", {"old.txt": b"old"})
    repo.commit(ORDINARY)
    repo.refs["v1/with a slash"] = repo.sha
    revision = {"branch": "main", "commit": repo.sha, "tag": "v1/with a slash"}[by]
    assert download(hub, tmp_path, repo_id="org/model", revision=revision).raised == ()
    assert_right(repo, repo.sha, tmp_path / "snapshot")
    assert {request.file for request in hub.of("cdn")} == {"model.safetensors"}


def test_an_older_commit_is_still_there_after_main_moved(hub: Hub, tmp_path: Path) -> None:
    repo = hub.repo("org/model", {"config.json": b"1", "model.safetensors": weights(1000, seed=1)})
    before = repo.sha
    repo.commit({"config.json": b"2", "model.safetensors": weights(1000, seed=2)})
    assert download(hub, tmp_path, repo_id="org/model", revision=before).raised == ()
    assert_right(repo, before, tmp_path / "snapshot")


def test_a_renamed_repository_is_found_by_its_old_name(hub: Hub, tmp_path: Path) -> None:
    repo = hub.repo("new/name", ORDINARY)
    hub.renamed["old/name"] = "new/name"
    assert download(hub, tmp_path, repo_id="old/name").raised == ()
    assert_right(repo, repo.sha, tmp_path / "snapshot")


def test_a_tree_of_more_than_a_page_is_read_to_its_end(hub: Hub, tmp_path: Path) -> None:
    hub.repo("org/many", {f"f{number:04}.txt": b"%d" % number for number in range(1_100)})
    said = download(hub, tmp_path, repo_id="org/many", allow_patterns=["f10*"])
    assert said.raised == ()
    assert len(list((tmp_path / "snapshot").glob("*.txt"))) == 100
    assert len(hub.of("tree")) == 2


def test_a_mirror_below_a_path_that_serves_all_bytes_itself_is_understood(tmp_path: Path) -> None:
    with Hub(prefix="/api/huggingfaceml/mirror") as hub:
        hub.direct = True
        repo = hub.repo("org/model", ORDINARY)
        assert download(hub, tmp_path, repo_id="org/model").raised == ()
        assert_right(repo, repo.sha, tmp_path / "snapshot")
        assert hub.of("cdn") == []


def test_the_real_library_fetches_over_tls(tmp_path: Path) -> None:
    with Hub(trustme.CA(), folder=tmp_path) as hub:
        repo = hub.repo("org/model", ORDINARY)
        assert download(hub, tmp_path, repo_id="org/model").raised == ()
        assert_right(repo, repo.sha, tmp_path / "snapshot")


def test_a_token_opens_a_gated_repository_and_never_reaches_the_cdn(hub: Hub, tmp_path: Path) -> None:
    repo = hub.repo("org/gated", ORDINARY, gated="closed")
    hub.token("hf_good", accepted=["org/gated"])
    assert download(hub, tmp_path, repo_id="org/gated", token="hf_good").raised == ()
    assert_right(repo, repo.sha, tmp_path / "snapshot")
    assert all(request.headers["authorization"] == "Bearer hf_good" for request in hub.of("info", "tree", "resolve"))
    assert hub.strangers_saw("hf_good") == []


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "gated, no token": ({"repo_id": "org/gated", "token": False}, "GatedRepoError"),
    "gated, token not accepted": ({"repo_id": "org/gated", "token": "hf_other"}, "GatedRepoError"),
    "private, no token": ({"repo_id": "org/private", "token": False}, "RepositoryNotFoundError"),
    "private, token without access": ({"repo_id": "org/private", "token": "hf_other"}, "RepositoryNotFoundError"),
    "no such repository": ({"repo_id": "org/none", "token": "hf_other"}, "RepositoryNotFoundError"),
    "no such revision": ({"repo_id": "org/open", "revision": "v9"}, "RevisionNotFoundError"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_is_the_library_s_own_error(hub: Hub, tmp_path: Path, case: str) -> None:
    hub.repo("org/gated", ORDINARY, gated="closed")
    hub.repo("org/private", ORDINARY, private=True)
    hub.repo("org/open", ORDINARY)
    hub.token("hf_other")
    arguments, error = REFUSALS[case]
    assert error in download(hub, tmp_path, **arguments).raised


def test_an_unknown_token_is_a_plain_401_and_not_a_missing_repository(hub: Hub, tmp_path: Path) -> None:
    hub.repo("org/open", ORDINARY)
    said = download(hub, tmp_path, repo_id="org/open", token="hf_wrong")
    assert said.raised[0] == "HfHubHTTPError"
    assert "Invalid credentials" in said.said


def test_a_file_that_is_not_there_is_the_library_s_own_error(hub: Hub, tmp_path: Path) -> None:
    hub.repo("org/open", ORDINARY)
    said = call(hub, tmp_path, "hf_hub_download", repo_id="org/open", filename="none.bin")
    assert "RemoteEntryNotFoundError" in said.raised


def test_the_library_takes_wrong_bytes_of_the_right_size_for_a_success(hub: Hub, tmp_path: Path) -> None:
    """Why the agent has a downloader of its own."""
    hub.repo("org/model", ORDINARY)
    hub.fault("cdn", Fault(flip=(2_000_000,)))
    assert download(hub, tmp_path, repo_id="org/model").raised == ()
    assert (tmp_path / "snapshot/model.safetensors").read_bytes() != contents.read(weights(3_000_001, seed=1))


def test_head_answers_with_the_headers_of_get(hub: Hub) -> None:
    repo = hub.repo("org/model", ORDINARY)
    for path in ("config.json", "model.safetensors"):
        url = f"{hub.url}/org/model/resolve/{repo.sha}/{path}"
        head, get = (
            requests.request(method, url, allow_redirects=False, timeout=5, headers={"Accept-Encoding": "identity"})
            for method in ("HEAD", "GET")
        )
        changing = {"Location", "Content-Length"} if head.is_redirect else set()
        assert {k: v for k, v in head.headers.items() if k not in changing} == {
            k: v for k, v in get.headers.items() if k not in changing
        }
        assert head.headers["Content-Length"] != "0"


def test_ranges_are_answered_as_asked(hub: Hub) -> None:
    repo = hub.repo("org/model", ORDINARY)
    url = f"{hub.url}/org/model/resolve/{repo.sha}/model.safetensors"
    true = contents.read(weights(3_000_001, seed=1))
    for asked, first, last in (("0-99", 0, 99), ("1048570-1048590", 1048570, 1048590), ("3000000-", 3000000, 3000000)):
        answer = requests.get(url, headers={"Range": f"bytes={asked}"}, timeout=5)
        assert (answer.status_code, answer.headers["Content-Range"]) == (206, f"bytes {first}-{last}/3000001")
        assert answer.content == true[first : last + 1]
    beyond = requests.get(url, headers={"Range": "bytes=3000001-"}, timeout=5)
    assert (beyond.status_code, beyond.headers["Content-Range"]) == (416, "bytes */3000001")


def test_a_link_that_expired_is_refused_and_a_new_one_works(hub: Hub) -> None:
    repo = hub.repo("org/model", ORDINARY)
    url = f"{hub.url}/org/model/resolve/{repo.sha}/model.safetensors"
    link = requests.get(url, allow_redirects=False, timeout=5).headers["Location"]
    assert requests.get(link, timeout=5).status_code == 200
    hub.links.expire()
    assert requests.get(link, timeout=5).status_code == 403
    assert requests.get(url, timeout=5).status_code == 200


def test_a_gated_listing_may_be_public_with_its_digests_masked(hub: Hub) -> None:
    repo = hub.repo("org/gated", ORDINARY, gated="listed")
    hub.token("hf_good", accepted=["org/gated"])
    url = f"{hub.url}/api/models/org/gated/revision/main?blobs=true"

    def digests(**headers: str) -> set[str]:
        siblings = requests.get(url, headers=headers, timeout=5).json()["siblings"]
        return {row["lfs"]["sha256"] for row in siblings if "lfs" in row}

    assert digests() == {MASK}
    assert digests(Authorization="Bearer hf_good") == {repo.files()["model.safetensors"].sha256}
    assert requests.get(f"{hub.url}/org/gated/resolve/main/config.json", timeout=5).status_code == 401


def test_stopped_and_started_again_it_keeps_its_address(hub: Hub) -> None:
    hub.repo("org/model", ORDINARY)
    before = hub.url
    hub.stop()
    with pytest.raises(requests.ConnectionError):
        requests.get(before, timeout=5)
    hub.start()
    assert hub.url == before
    assert requests.get(f"{before}/org/model/resolve/main/config.json", timeout=5).status_code == 200
