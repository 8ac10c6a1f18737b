"""Names of files that could escape, hide, mislead or clash are refused; what is accepted can lie in one folder."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.acquire import names
from agent.acquire.disk.paths import Tree

HOSTILE = [
    "",
    ".",
    "..",
    "../x",
    "a/../../x",
    "/etc/passwd",
    "a//b",
    "a/",
    "./a",
    "a/./b",
    "a\\b",
    "..\\x",
    "C:x",
    "c:/x",
    "nul\0x",
    "line\nbreak",
    "tab\tx",
    "del\x7f",
    "right\u202eto-left",
    "zero\u200bwidth",
    "soft\u00adhyphen",
    "line\u2028separator",
    "lone\ud800surrogate",
    " leading",
    "trailing ",
    "a /b",
    "dot.",
    "a./b",
    "-rf",
    "a/-rf",
    "~/.ssh/x",
    "~root",
    ".git/config",
    "a/.GIT/hooks/x",
    ".git",
    ".cache/huggingface/download/x.metadata",
    "a/.Cache/x",
    ".modelforge-root",
    ".partial/x",
    ".removed/x",
    "modelforge-manifest.json",
    "ModelForge-Manifest.JSON",
    "modelforge-manifest.json/x",
    "x" * 241,
    "é" * 121,
    "/".join(["d"] * 33),
    "/".join(["d" * 200] * 6),
]
FINE = [
    "config.json",
    "model-00001-of-00002.safetensors",
    "unet/diffusion_pytorch_model.safetensors",
    ".gitattributes",
    "a/.gitignore",
    "manifest.json",
    "a/modelforge-manifest.json",
    "名前.txt",
    "with space.txt",
    "a~b",
    "a-b",
    "..a",
    "a..b",
    "x" * 240,
    "/".join(["d"] * 32),
]


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:40])
def test_a_hostile_name_is_refused_with_the_reason(name: str) -> None:
    assert names.hostile(name)


@pytest.mark.parametrize("name", FINE, ids=lambda name: ascii(name)[:40])
def test_an_honest_name_is_accepted(name: str) -> None:
    assert names.hostile(name) == ""


@pytest.mark.parametrize(
    "paths",
    [
        ("a", "a"),
        ("a", "A"),
        ("d/a", "D/a"),
        ("d/a", "D/b"),
        ("a", "a/b"),
        ("a/b", "a"),
        ("A", "a/b"),
        ("caf\u00e9", "cafe\u0301"),
        ("straße", "STRASSE"),
        ("ſ", "s"),
    ],
    ids=lambda paths: ascii(paths),
)
def test_names_that_cannot_both_be_made_are_found(paths: tuple[str, str]) -> None:
    assert names.clash(paths) is not None


@pytest.mark.parametrize("paths", [("a", "b"), ("d/a", "d/b", "d/e/a"), ("a", "a.b"), ("ab/c", "a/b")], ids=str)
def test_names_that_can_all_be_made_do_not_clash(paths: tuple[str, ...]) -> None:
    assert names.clash(paths) is None


_part = st.text(
    st.one_of(st.sampled_from("aA.é\u0301-~ \\/:\n\u202e"), st.characters()), min_size=1, max_size=6
) | st.sampled_from(["..", ".", ".git", "a", "A"])
_path = st.lists(_part, min_size=1, max_size=4).map("/".join)


@settings(max_examples=300, deadline=None)
@given(st.lists(_path, min_size=1, max_size=8))
def test_what_is_accepted_can_be_made_together_in_one_folder_and_nowhere_else(paths: list[str]) -> None:
    accepted = [path for path in paths if not names.hostile(path)]
    if names.clash(accepted) is not None:
        return
    with tempfile.TemporaryDirectory() as above:
        root = Path(above) / "root"
        root.mkdir()
        with Tree(root) as tree:
            for path in accepted:
                tree.mkdirs(path.rpartition("/")[0])
                tree.write(path, path.encode())
            assert sorted(name for name, _ in tree.files("")) == sorted(accepted)
            assert all(tree.read(path, 4096) == path.encode() for path in accepted)
        assert os.listdir(above) == ["root"]
