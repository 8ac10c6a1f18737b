"""What lay in a root that was retired is gone with it: shown as what was last known, and counted nowhere."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from artifacts import listed, standing, storage
from artifacts.models import Artifact, StorageRoot
from nodes import control
from nodes.models import Node
from tests.artifacts.ordering import GIB, OPERATOR, a_root, a_server, an_artifact
from tests.nodes.hearing import START

pytestmark = pytest.mark.django_db
URL = "/api/v1/artifacts"


@pytest.fixture
def artifact(root: StorageRoot) -> Artifact:
    """A snapshot that was published in the root."""
    return an_artifact(root)


@pytest.fixture
def gone(artifact: Artifact) -> Artifact:
    """The same after its root was retired."""
    storage.retire(artifact.root, reason="the disk is full", by=OPERATOR, now=START)
    return Artifact.objects.get()


def shown(api: Client, **query: Any) -> list[tuple[str, str]]:
    """State and last known state of what a query finds."""
    answer = api.get(URL, query)
    assert answer.status_code == 200, answer.content
    return [(one["state"], one["last_known_state"]) for one in answer.json()["results"]]


def test_what_lies_in_a_root_in_use_is_there(artifact: Artifact, api: Client) -> None:
    assert shown(api) == shown(api, state="published") == [("published", "published")]
    assert shown(api, state="gone") == []


def test_what_lay_in_a_retired_root_is_listed_only_where_it_is_asked_for(gone: Artifact, api: Client) -> None:
    assert shown(api) == shown(api, state="published") == []
    assert shown(api, state="gone") == [("gone", "published")]
    assert api.get(f"{URL}/{gone.pk}").json()["state"] == "gone"


def test_what_was_damaged_then_is_told_as_the_last_known(gone: Artifact, api: Client) -> None:
    Artifact.objects.update(state="damaged")
    assert shown(api, state="damaged") == []
    assert shown(api, state="gone") == [("gone", "damaged")]


def test_what_was_removed_before_is_removed(gone: Artifact, api: Client) -> None:
    Artifact.objects.update(state="removed", removed_at=START)
    assert shown(api, state="gone") == []
    assert shown(api, state="removed") == [("removed", "removed")]


def test_what_lies_on_a_retired_node_is_gone_too(artifact: Artifact, api: Client) -> None:
    control.retire(artifact.node, reason="sold", by=OPERATOR, now=START)
    assert shown(api) == []
    assert shown(api, state="gone") == [("gone", "published")]


def test_rows_and_queries_agree(root: StorageRoot) -> None:
    retired = a_root(root.node, "/data/artifacts/old")
    sold = a_root(a_server("sold"))
    for each in (root, retired, sold):
        for number, state in enumerate(Artifact.State.values):
            an_artifact(each, f"org/m{number}")
            Artifact.objects.filter(root=each, repo_id=f"org/m{number}").update(state=state)
    storage.retire(retired, reason="old", by=OPERATOR, now=START)
    control.retire(sold.node, reason="sold", by=OPERATOR, now=START)
    found = {state: set(listed.artifacts().filter(standing.shows(state))) for state in standing.STATES}
    assert {one: standing.of(one) for one in listed.artifacts()} == {
        one: state for state in found for one in found[state]
    }
    assert set(listed.artifacts().filter(standing.HERE)) == found["published"] | found["damaged"]
    assert [len(found[state]) for state in standing.STATES] == [1, 1, 3, 4]


def counted(api: Client) -> tuple[float, float]:
    """How many artifacts Prometheus is told of, and how many bytes of them."""
    said = dict(line.rsplit(" ", 1) for line in api.get("/metrics").content.decode().splitlines() if line[0] != "#")
    labels = '{state="published"}'
    return float(said[f"modelforge_artifacts{labels}"]), float(said[f"modelforge_artifact_bytes{labels}"])


def test_it_is_in_no_total(gone: Artifact, api: Client, mara: Client) -> None:
    assert counted(api) == (0, 0)
    models = mara.get("/admin/").context["models"]
    assert (models.artifacts, models.artifact_size) == (0, "")
    root = api.get(f"/api/v1/admin/storage-roots/{gone.root_id}").json()
    assert (root["artifacts"], root["capacity"]["artifact_bytes"]) == (0, 0)


def test_a_damaged_one_that_is_gone_needs_no_attention(gone: Artifact, mara: Client) -> None:
    Artifact.objects.update(state="damaged", damaged=["a"])
    assert mara.get("/admin/").context["models"].concerns == []


def test_the_same_folder_registered_again_counts_its_snapshot_once(gone: Artifact, api: Client, mara: Client) -> None:
    fresh = a_root(gone.node, gone.root.container_path)
    an_artifact(fresh, already_present=True, reread=True)
    assert Artifact.objects.count() == 2
    assert shown(api) == [("published", "published")]
    assert counted(api) == (1, 10 * GIB)
    assert mara.get("/admin/").context["models"].artifacts == 1


# The pages.


def page(client: Client, subject: Any) -> str:
    """The text of its page."""
    name = f"admin:{subject._meta.app_label}_{subject._meta.model_name}_change"
    return " ".join(client.get(reverse(name, args=[subject.pk])).content.decode().split())


def test_its_page_tells_what_was_last_known(gone: Artifact, mara: Client) -> None:
    said = page(mara, gone)
    assert "was retired" in said
    assert "Last known, " in said
    assert ": published, every byte right on 2026-03-01" in said
    assert "Where it lay" in said


def test_the_nodes_page_lists_what_is_there_and_counts_what_is_gone(gone: Artifact, mara: Client) -> None:
    said = page(mara, gone.node)
    assert "nothing lies here" in said
    assert "Gone with retired roots" in said
    assert "state=gone" in said


def test_the_nodes_page_says_nothing_of_the_kind_where_all_is_there(artifact: Artifact, mara: Client) -> None:
    said = page(mara, artifact.node)
    assert "org/model" in said
    assert "Gone with retired roots" not in said


def test_the_list_finds_it_by_its_filter(gone: Artifact, mara: Client) -> None:
    path = reverse("admin:artifacts_artifact_changelist")
    assert "org/model" not in mara.get(path).content.decode()
    found = mara.get(path, {"state": "gone"}).content.decode()
    assert "org/model" in found
    assert "was published" in found


def test_a_retired_roots_page_lists_it_as_gone(gone: Artifact, mara: Client) -> None:
    assert "last known: published" in page(mara, gone.root)


def test_a_node_that_is_retired_shows_none_as_there(artifact: Artifact, mara: Client) -> None:
    Node.objects.update(retired_at=datetime.now(UTC))
    assert "nothing lies here" in page(mara, artifact.node)
