"""What may be asked of the Hub: repositories, revisions, patterns, formats."""

from typing import Any

import pytest

from artifacts import orders
from artifacts.models import Job, StorageRoot
from nodes.callers import Caller
from tests.artifacts.ordering import (
    OPERATOR,
)
from tests.artifacts.refusals import fields, refused
from tests.nodes.hearing import START

pytestmark = pytest.mark.django_db
USUAL: dict[str, Any] = {"repo_id": "org/model", "now": START}


def acquire(root: StorageRoot, by: Caller = OPERATOR, **said: Any) -> tuple[Job, bool]:
    """Order the usual snapshot, or as told."""
    return orders.acquire(root, **USUAL | {"by": by} | said)


@pytest.mark.parametrize("revision", ["ab" * 20, "AB" * 20], ids=["small", "capital"])
def test_a_commit_is_pinned_from_the_start(root: StorageRoot, revision: str) -> None:
    job, _ = acquire(root, revision=revision)
    assert (job.revision, job.commit) == ("ab" * 20, "ab" * 20)


@pytest.mark.parametrize(
    "repo_id", ["gpt2", "org/model", "Org-1/Model_2.5-GGUF", "a/b", "_x/y_", "o" * 45 + "/" + "m" * 50]
)
def test_a_repository_of_the_hub_may_be_ordered(root: StorageRoot, repo_id: str) -> None:
    assert acquire(root, repo_id=repo_id)[0].repo_id == repo_id


@pytest.mark.parametrize(
    "repo_id",
    [
        "",
        "/model",
        "org/",
        "org/model/more",
        "../etc",
        "org/..",
        "org/a..b",
        "org/a--b",
        "org/.hidden",
        "org/-dash",
        "org/dash-",
        "org/dot.",
        "org/model.git",
        "org/mo del",
        "org/model\n",
        "org/modèle",
        "org/model?x=1",
        "org\\model",
        "https://hub/org/model",
        "m" * 97,
        None,
    ],
    ids=repr,
)
def test_a_name_that_is_no_repository_is_refused(root: StorageRoot, repo_id: Any) -> None:
    assert fields(refused(lambda: acquire(root, repo_id=repo_id))) == ["repo_id"]
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    "revision", ["main", "v1.0", "refs/pr/3", "feature/x_y-z", "c" * 39, "zweig-für-alle", "r" * 250]
)
def test_a_branch_or_tag_may_be_ordered(root: StorageRoot, revision: str) -> None:
    assert acquire(root, revision=revision)[0].revision == revision


@pytest.mark.parametrize(
    "revision",
    [
        "",
        " ",
        "ma in",
        "main\n",
        "a..b",
        "../main",
        "/main",
        "main/",
        "-main",
        "a//b",
        "a^b",
        "a:b",
        "a?b",
        "a*b",
        "a~1",
        "a[b",
        "a\\b",
        "a@{1}",
        ".main",
        "a/.b",
        "main.lock",
        "main.",
        "x" * 251,
        "a\u202eb",
        7,
    ],
    ids=repr,
)
def test_a_text_that_names_no_revision_is_refused(root: StorageRoot, revision: Any) -> None:
    assert fields(refused(lambda: acquire(root, revision=revision))) == ["revision"]


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"allow_patterns": "*.bin"}, "allow_patterns"),
        ({"allow_patterns": ["x"] * 65}, "allow_patterns"),
        ({"allow_patterns": ["*", ""]}, "allow_patterns.1"),
        ({"ignore_patterns": ["x" * 513]}, "ignore_patterns.0"),
        ({"ignore_patterns": ["a\nb"]}, "ignore_patterns.0"),
        ({"ignore_patterns": [7]}, "ignore_patterns.0"),
        ({"allow_formats": ["exe"], "reason": "why not"}, "allow_formats"),
        ({"allow_formats": "pickle", "reason": "why not"}, "allow_formats"),
        ({"allow_formats": ["pickle"]}, "reason"),
        ({"allow_formats": ["pickle"], "reason": "  "}, "reason"),
        ({"reason": "x" * 256}, "reason"),
    ],
    ids=str,
)
def test_what_an_order_says_is_bounded(root: StorageRoot, said: dict[str, Any], field: str) -> None:
    assert fields(refused(lambda: acquire(root, **said))) == [field]


def test_every_fault_of_an_order_is_told_at_once(root: StorageRoot) -> None:
    refusal = refused(lambda: acquire(root, repo_id="", revision="", allow_patterns=7))
    assert fields(refusal) == ["repo_id", "revision", "allow_patterns"]
