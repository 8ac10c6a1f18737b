"""What the tests of an acquisition share: a repository, what goes wrong at the Hub, and what lies on the disk."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.hub import contents
from tests.hub.contents import Generated, weights
from tests.hub.faults import Fault, Kind, Request, Rule
from tests.hub.hub import Hub
from tests.hub.repositories import Files, Repository

REPO = "org/model"
BIG = "model.safetensors"
BIG_BYTES = 2_500_000
SMALL = "config.json"
FILES: Files = {
    SMALL: b'{"model_type": "llama"}',
    "README.md": b"# A model\n" * 200,
    "empty.txt": b"",
    BIG: weights(BIG_BYTES, seed=1),
    "tokenizer/tokenizer.model": Generated(70_000, seed=2),
}
"""A snapshot with everything that is fetched in a way of its own: large, small, empty, and in a folder."""


@dataclass(frozen=True)
class Told:
    """One thing that goes wrong at the Hub."""

    kind: Kind | None
    fault: Fault
    rule: dict[str, Any] = field(default_factory=dict)


def always(kind: Kind | None, *, file: str = "*", when: Callable[[Request], bool] | None = None, **fault: Any) -> Told:
    """With every request of this kind."""
    return Told(kind, Fault(**fault), {"file": file, "when": when})


def once(
    kind: Kind | None,
    *,
    file: str = "*",
    after: int = 0,
    times: int = 1,
    when: Callable[[Request], bool] | None = None,
    **fault: Any,
) -> Told:
    """With the first request of this kind, or the first few."""
    return Told(kind, Fault(**fault), {"file": file, "after": after, "times": times, "when": when})


def let_go_wrong(hub: Hub, *faults: Told) -> list[Rule]:
    """From now on; the rules tell whom they befell."""
    return [hub.fault(told.kind, told.fault, **told.rule) for told in faults]


def bytes_of(repo: Repository, commit: str = "") -> dict[str, bytes]:
    """What a snapshot must hold."""
    return {path: contents.read(file.content) for path, file in repo.files(commit).items()}


def lying_in(folder: Path) -> dict[str, bytes]:
    """What a published folder holds beside the agent's own manifest."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("manifest.json", "modelforge-manifest.json")
    }


def tree(root: Path, *, but: Path | None = None) -> dict[str, tuple[int, int, bytes]]:
    """Everything below a folder, but for one: mode, size and content, to compare before and after."""
    return {
        str(path.relative_to(root)): (
            path.lstat().st_mode,
            path.lstat().st_size if path.is_file() else 0,
            path.read_bytes() if path.is_file() and not path.is_symlink() else b"",
        )
        for path in root.rglob("*")
        if but is None or not path.is_relative_to(but)
    }
