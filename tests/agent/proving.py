"""What the tests of storage roots share: an artifact volume, orders about a root in it, and what a look finds."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from agent import roots, wire
from agent.roots import Ground
from tests.agent.trees import Tree

NODE = UUID("6f1c1a53-9d0f-4a0e-8f0e-3f8f6f1f2a11")
ROOT = UUID("11111111-1111-4111-8111-111111111111")
OTHER = UUID("22222222-2222-4222-8222-222222222222")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def ground_in(folder: Path) -> Ground:
    """An artifact volume on a plain disk, outside any container."""
    (folder / "artifacts").mkdir()
    tree = Tree(folder / "system")
    tree.write("proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    return Ground(node_id=NODE, artifact_dir=folder / "artifacts", system=folder / "system")


def order(ground: Ground, name: str = "models", **more: Any) -> wire.RootOrder:
    return wire.RootOrder(root_id=ROOT, path=str(ground.artifact_dir / name), **more)


def approved(ground: Ground, name: str = "models") -> wire.RootOrder:
    """A root that was approved, as the control plane orders it from then on."""
    proof = roots.prove(order(ground, name, approve=True), ground, now=NOW)
    assert (proof.fault, proof.detail, proof.approved) == (None, "", True)
    return order(ground, name, device_id=proof.device_id, fsid=proof.fsid)


def prove(ground: Ground, wanted: wire.RootOrder) -> wire.RootProof:
    return roots.prove(wanted, ground, now=NOW)


def fault(ground: Ground, wanted: wire.RootOrder) -> str | None:
    proof = prove(ground, wanted)
    assert bool(proof.detail) == (proof.fault is not None), "a fault tells its remedy"
    assert not (proof.fault and proof.approved)
    return proof.fault


def mounted(ground: Ground, *lines: str, container: bool = False) -> None:
    text = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" if not container else "22 1 0:50 / / rw - overlay overlay rw\n"
    tree = Tree(ground.system)
    tree.write("proc/self/mountinfo", text + "".join(f"{line}\n" for line in lines))
    if container:
        tree.write(".dockerenv", "")


def refusing(code: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files of that name be refused by the kernel."""
    real = os.open

    def refuse(path: Any, flags: int, *arguments: Any, **more: Any) -> int:
        if str(path) == name and flags & os.O_CREAT:
            raise OSError(code, os.strerror(code))
        return real(path, flags, *arguments, **more)

    monkeypatch.setattr(os, "open", refuse)
