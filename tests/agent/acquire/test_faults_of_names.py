"""A repository with one hostile name is refused whole, through the real listing, and before anything is written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from agent import wire
from agent.acquire import plan
from agent.acquire.hub import listing
from agent.acquire.hub.source import Source
from agent.acquire.terms import Failed, Plan
from tests.agent.acquire.acquiring import FILES, REPO
from tests.hub.faults import Fault
from tests.hub.hub import Hub

HOSTILE = {
    "up": "../evil",
    "up from within": "a/../../evil",
    "up that stays within": "a/../b",
    "absolute": "/etc/cron.d/evil",
    "this folder": "./x",
    "only a dot": ".",
    "nothing": "",
    "an empty folder name": "a//b",
    "a folder": "x/",
    "a backslash": "a\\b",
    "up, for Windows": "..\\evil",
    "a drive": "C:/evil",
    "a zero byte": "a\0b",
    "a line break": "a\nb",
    "an escape sequence": "a\x1b[2Jb",
    "text that runs backwards": "model\u202egnp.safetensors",
    "a zero-width space": "model\u200b.safetensors",
    "half a character": "a\ud800b",
    "git's own": ".git/config",
    "git's own, deeper": "x/.git/hooks/post-checkout",
    "git's own, in capitals": ".GIT/config",
    "the library's own": ".cache/huggingface/download/config.json.metadata",
    "our marker": ".modelforge-root",
    "our partials": ".partial/x/job.json",
    "our removals": ".removed/x",
    "an option": "-rf",
    "blanks at the end": "model.safetensors ",
    "a home": "~/.ssh/authorized_keys",
    "a name of 241 bytes": "x" * 241,
    "a path of 1025 bytes": "/".join(["x" * 204] * 5) + "x",
    "deeper than 32 folders": "/".join(["x"] * 33),
}
CLASHES: dict[str, tuple[str, str]] = {
    "case": ("README.md", "readme.md"),
    "Unicode forms": ("caf\u00e9.txt", "cafe\u0301.txt"),
    "the case of folders": ("Data/a.txt", "data/b.txt"),
    "a file and a folder": ("a", "a/b"),
    "a folder and a file of other case": ("a/b", "A"),
    "letters that fold into others": ("stra\u00dfe.txt", "STRASSE.txt"),
}
GOOD = [
    "a/b/c.txt",
    "ünïcode \u4f60\u597d.json",
    "with space.txt",
    "..hidden",
    "a..b",
    ".gitattributes",
    "x" * 240,
    "a,b&c=d?e#f%2F.txt",
]


def planned(hub: Hub, root: Path, **order: Any) -> Plan:
    """The listing through the real library, and the plan of it."""
    wanted = wire.AcquireOrder(**{"root_id": uuid4(), "path": str(root), "repo_id": REPO, "revision": "main", **order})
    return plan.make(listing.list_files(Source(endpoint=hub.url), REPO, "main"), wanted)


def listed_with(*names: str) -> Callable[[Any], Any]:
    """The listing, with these small files in it."""

    def edit(told: Any) -> Any:
        told["siblings"] += [{"rfilename": name, "size": 1, "blobId": "a" * 40} for name in names]
        return told

    return edit


@pytest.mark.parametrize("name", HOSTILE)
def test_one_hostile_name_refuses_the_whole_manifest(hub: Hub, tmp_path: Path, name: str) -> None:
    """Field case 68."""
    hub.repo(REPO, FILES)
    hub.fault("info", Fault(edit=listed_with(HOSTILE[name])))
    with pytest.raises(Failed) as failed:
        planned(hub, tmp_path)
    assert failed.value.code == "manifest_refused"
    assert failed.value.detail.isprintable()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_not_made_harmless_by_leaving_it_out(hub: Hub, tmp_path: Path, name: str) -> None:
    hub.repo(REPO, FILES)
    hub.fault("info", Fault(edit=listed_with(HOSTILE[name])))
    with pytest.raises(Failed) as failed:
        planned(hub, tmp_path, allow_patterns=["config.json"])
    assert failed.value.code == "manifest_refused"


@pytest.mark.parametrize("name", CLASHES)
def test_two_names_that_cannot_both_be_made_everywhere_refuse_the_manifest(hub: Hub, tmp_path: Path, name: str) -> None:
    hub.repo(REPO, dict.fromkeys(CLASHES[name], b"x"))
    with pytest.raises(Failed) as failed:
        planned(hub, tmp_path)
    assert failed.value.code == "manifest_refused"


def test_one_name_told_twice_refuses_the_manifest(hub: Hub, tmp_path: Path) -> None:
    hub.repo(REPO, FILES)
    hub.fault("info", Fault(edit=listed_with("config.json")))
    with pytest.raises(Failed) as failed:
        planned(hub, tmp_path)
    assert failed.value.code == "manifest_refused"


def test_odd_names_that_harm_nobody_are_brought(hub: Hub, tmp_path: Path) -> None:
    hub.repo(REPO, dict.fromkeys(GOOD, b"x"))
    assert [file.path for file in planned(hub, tmp_path).files] == sorted(GOOD)


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        ({"allow_patterns": ["*.json"]}, {"config.json"}),
        ({"allow_patterns": ["tokenizer/"]}, {"tokenizer/tokenizer.model"}),
        ({"allow_patterns": ["*.model"]}, {"tokenizer/tokenizer.model"}),
        ({"ignore_patterns": ["*.safetensors", "*.md"]}, {"config.json", "empty.txt", "tokenizer/tokenizer.model"}),
        ({"allow_patterns": ["*"], "ignore_patterns": ["t*", "e*", "R*", "m*"]}, {"config.json"}),
    ],
    ids=["ending", "folder", "across folders", "ignored", "both"],
)
def test_patterns_select_as_the_library_does(
    hub: Hub, tmp_path: Path, patterns: dict[str, list[str]], left: set[str]
) -> None:
    hub.repo(REPO, FILES)
    assert {file.path for file in planned(hub, tmp_path, **patterns).files} == left


@pytest.mark.parametrize("patterns", [{"allow_patterns": ["*.JSON"]}, {"ignore_patterns": ["*"]}], ids=["case", "all"])
def test_patterns_that_leave_nothing_are_refused(hub: Hub, tmp_path: Path, patterns: dict[str, list[str]]) -> None:
    """The library warns, and calls an empty folder a success."""
    hub.repo(REPO, FILES)
    with pytest.raises(Failed) as failed:
        planned(hub, tmp_path, **patterns)
    assert failed.value.code == "manifest_refused"


def test_an_empty_repository_is_refused(hub: Hub, tmp_path: Path) -> None:
    hub.repo(REPO, {})
    with pytest.raises(Failed) as failed:
        planned(hub, tmp_path)
    assert failed.value.code == "manifest_refused"
