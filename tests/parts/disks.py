"""Small disks for tests: in memory, or a file with a real file system, mounted for a while."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

MIB = 1024 * 1024


@contextmanager
def memory(at: Path, size_bytes: int, *, inodes: int = 0) -> Iterator[Path]:
    """An empty disk in memory, mounted at ``at``."""
    at.mkdir(parents=True, exist_ok=True)
    options = f"size={size_bytes}" + (f",nr_inodes={inodes}" if inodes else "")
    with _mounted(["-t", "tmpfs", "-o", options, "tmpfs"], at):
        yield at


@contextmanager
def image(at: Path, size_bytes: int, *, file: Path) -> Iterator[Path]:
    """An empty disk with ext4 in ``file``, mounted at ``at``."""
    at.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as opened:
        opened.truncate(size_bytes)
    made = subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(file)], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no ext4 can be made here: {made.stderr.strip()}")
    with _mounted(["-o", "loop", str(file)], at):
        yield at


@contextmanager
def again(source: Path, at: Path, *options: str) -> Iterator[Path]:
    """The same folder a second time, elsewhere, as Docker maps one."""
    at.mkdir(parents=True, exist_ok=True)
    with _mounted(["--bind", *options, str(source)], at):
        yield at


def unmount(at: Path) -> None:
    """Take it away, whoever still uses it."""
    subprocess.run(["umount", "--lazy", str(at)], check=True, capture_output=True)


def remount(at: Path, how: str) -> None:
    """``ro`` or ``rw``, while nothing is open there for writing."""
    subprocess.run(["mount", "-o", f"remount,bind,{how}", str(at)], check=True, capture_output=True)


def fill(disk: Path) -> Path:
    """A file that takes all the room that is left, whoever else is writing."""
    file = disk / "filler"
    with file.open("wb", buffering=0) as opened:
        for block in (bytes(64 * 1024), bytes(1024)):
            with suppress(OSError):
                while opened.write(block):
                    pass
    return file


@contextmanager
def _mounted(what: list[str], at: Path) -> Iterator[None]:
    done = subprocess.run(["mount", *what, str(at)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this machine lets nobody mount: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=False, capture_output=True)  # a test may have done it
