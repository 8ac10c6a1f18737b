"""A plan is the whole of what a job brings: selected as the Hub's library selects, or refused with a reason."""

from typing import Any

import pytest
from huggingface_hub.utils._paths import filter_repo_objects
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.acquire import plan
from agent.acquire.hub.listing import Listing
from agent.acquire.terms import Failed, PlannedFile
from tests.agent.acquire.samples import COMMIT, listing, order, planned

FILES = {
    "config.json": b"{}",
    "README.md": b"# A model",
    "model-00001-of-00002.safetensors": b"one",
    "model-00002-of-00002.safetensors": b"two",
    "model.safetensors.index.json": b"{}",
    "onnx/config.json": b"{}",
    "onnx/deep/tokenizer.json": b"{}",
}


def refused(files: dict[str, bytes] | Listing, **ordered: Any) -> str:
    """Why no plan is made."""
    with pytest.raises(Failed) as caught:
        plan.make(files if isinstance(files, Listing) else listing(files), order(**ordered))
    assert caught.value.code == "manifest_refused"
    return caught.value.detail


def chosen(allow: list[str], ignore: list[str]) -> list[str]:
    """The names that a plan brings."""
    made = plan.make(listing(FILES), order(allow_patterns=allow, ignore_patterns=ignore))
    return [file.path for file in made.files]


def test_a_plan_brings_all_files_in_order_of_their_names() -> None:
    made = plan.make(listing(FILES), order())
    assert [file.path for file in made.files] == sorted(FILES)
    assert (made.repo_id, made.commit, made.selection) == ("org/model", COMMIT, "")
    assert made.bytes == sum(len(content) for content in FILES.values())


@pytest.mark.parametrize(
    ("allow", "ignore"),
    [
        ([], ["*.json"]),
        (["*.json"], []),
        (["onnx/"], []),
        (["onnx/*"], ["*tokenizer*"]),
        (["model-*"], ["*-00002-*"]),
        (["*.JSON", "*.md"], []),
        (["config.json"], []),
        (["*"], ["onnx/"]),
        (["model-0000[1]*"], []),
        (["?onfig.json"], []),
    ],
    ids=str,
)
def test_patterns_select_what_the_hubs_own_library_selects(allow: list[str], ignore: list[str]) -> None:
    theirs = filter_repo_objects(FILES, allow_patterns=allow or None, ignore_patterns=ignore or None)
    assert chosen(allow, ignore) == sorted(theirs)


_patterns = st.lists(st.text(st.sampled_from("*?[]!/.acdegijmnox-0128"), min_size=1, max_size=6), max_size=3)


@settings(max_examples=200, deadline=None)
@given(_patterns, _patterns)
def test_any_patterns_select_what_the_hubs_own_library_selects(allow: list[str], ignore: list[str]) -> None:
    theirs = sorted(filter_repo_objects(FILES, allow_patterns=allow or None, ignore_patterns=ignore or None))
    if theirs:
        assert chosen(allow, ignore) == theirs
    else:
        assert "patterns" in refused(FILES, allow_patterns=allow, ignore_patterns=ignore)


def test_patterns_that_leave_nothing_are_told_as_such() -> None:
    assert "mend the allow and ignore patterns" in refused(FILES, allow_patterns=["*.gguf"])


def test_a_repository_without_files_is_no_snapshot() -> None:
    assert "holds no file" in refused({})


def test_the_selections_digest_is_that_of_sorted_patterns_without_repeats() -> None:
    assert plan.selection_digest([], []) == ""
    digest = plan.selection_digest(["b", "a", "b"], [])
    assert digest == plan.selection_digest(["a", "b"], [])
    assert digest == "8c7f21b6fc22155fe8dcf0f30893e1684a712c8def986e6e2d02e799fa8cfc0f"  # of [["a","b"],[]]
    assert digest != plan.selection_digest([], ["a", "b"])


def test_a_selection_is_published_beside_the_whole() -> None:
    whole, part = plan.make(listing(FILES), order()), plan.make(listing(FILES), order(ignore_patterns=["*.md"]))
    assert whole.snapshot == f"models/org/model/{COMMIT}"
    assert part.snapshot == f"models/org/model/{COMMIT}.{part.selection[:12]}"


def test_one_hostile_name_refuses_the_whole_even_where_it_is_not_selected() -> None:
    files = FILES | {"../../etc/cron.d/x": b"x"}
    assert "'../../etc/cron.d/x'" in refused(files)
    assert "'../../etc/cron.d/x'" in refused(files, allow_patterns=["config.json"])


def test_a_name_listed_twice_refuses_the_whole() -> None:
    twice = planned("config.json", b"{}")
    assert "twice" in refused(Listing(COMMIT, False, (twice, twice)))


def test_names_that_differ_only_in_case_are_refused_unless_one_is_left_out() -> None:
    files = {"README.md": b"1", "readme.md": b"2"}
    assert "'README.md' and 'readme.md'" in refused(files)
    made = plan.make(listing(files), order(ignore_patterns=["readme.md"]))
    assert [file.path for file in made.files] == ["README.md"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("pytorch_model.bin", "pickle"),
        ("model.PT", "pickle"),
        ("a/x.pkl", "pickle"),
        ("tf_model.h5", "pickle"),
        ("modeling_x.py", "code"),
        ("lib.so", "code"),
        ("run.sh", "code"),
        ("demo.ipynb", "code"),
        ("data.tar.gz", "archive"),
        ("model.nemo", "archive"),
        ("x.zip", "archive"),
        ("model.onnx", "other"),
    ],
    ids=lambda text: text,
)
def test_a_format_that_its_name_gives_away_is_refused_unless_it_is_allowed_by_name(name: str, kind: str) -> None:
    files = {"config.json": b"{}", name: b"x"}
    detail = refused(files)
    assert name in detail
    assert f"format '{kind}'" in detail
    assert len(plan.make(listing(files), order(allow_formats=[kind])).files) == 2
    assert len(plan.make(listing(files), order(ignore_patterns=[name])).files) == 1


def test_allowing_one_format_allows_no_other() -> None:
    assert "format 'code'" in refused({"a.py": b"", "b.bin": b""}, allow_formats=["pickle"])


def test_a_large_file_of_an_unknown_ending_is_refused_before_it_is_fetched() -> None:
    large = Listing(COMMIT, False, (planned("weights.xyz", b"x", large=True),))
    assert "format 'other'" in refused(large)
    assert plan.make(listing({"notes.xyz": b"x"}), order()).files  # a small one is judged by its bytes


def test_a_version_behind_an_ending_does_not_hide_it() -> None:
    tokenizer = Listing(COMMIT, False, (planned("tokenizer.model.v3", b"x", large=True),))
    assert plan.make(tokenizer, order()).files
    assert "format 'pickle'" in refused({"weights.bin.v2": b"x"})


@pytest.mark.parametrize("size", [-1, plan.MAX_FILE_BYTES + 1], ids=["negative", "enormous"])
def test_a_size_that_no_file_has_is_refused(size: int) -> None:
    assert "bytes, which no file has" in refused(
        Listing(COMMIT, False, (PlannedFile("a.json", size, git_sha1="0" * 40),))
    )


def test_more_than_all_bytes_together_are_refused() -> None:
    half = tuple(PlannedFile(f"{n}.json", plan.MAX_FILE_BYTES, git_sha1="0" * 40) for n in range(17))
    assert "together" in refused(Listing(COMMIT, False, half))


def test_too_many_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MAX_FILES", len(FILES))
    assert plan.make(listing(FILES), order()).files
    assert "files" in refused(FILES | {"one-more.json": b"{}"})


@pytest.mark.parametrize(
    "repo_id",
    [
        "../x",
        "a/b/c",
        "/a",
        "a/",
        ".a/b",
        "a/..",
        "a b/c",
        "-a/b",
        "a\\b",
        f"gpt2/{COMMIT}",
        f"gpt2/{COMMIT}.{'0' * 12}",
    ],
    ids=str,
)
def test_a_repository_whose_name_is_no_safe_folder_is_refused(repo_id: str) -> None:
    assert "repository's name" in refused(FILES, repo_id=repo_id)


@pytest.mark.parametrize("repo_id", ["gpt2", "org/model", "Org-1/Model_v1.5"], ids=str)
def test_repositories_are_named_as_the_hub_names_them(repo_id: str) -> None:
    assert plan.make(listing(FILES), order(repo_id=repo_id)).snapshot == f"models/{repo_id}/{COMMIT}"


def test_a_name_is_shown_escaped_and_cut() -> None:
    assert plan.shown("a\n" * 200) == "'" + "a\\n" * 58 + "a..." + "'"
