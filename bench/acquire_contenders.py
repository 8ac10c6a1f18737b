"""Who brings a snapshot, and what the machine itself can do: each runs once and says how many seconds it took."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bench.acquire_snapshots import MIB, Snapshot

_MOST_PARALLEL = 8


@dataclass(frozen=True)
class Line:
    """A Hub to bring it from."""

    endpoint: str
    ca_file: Path | None = None


@dataclass(frozen=True)
class Ours:
    """What one acquisition of ours took."""

    seconds: float
    bytes_fetched: int
    rss_mib: float
    cpu_seconds: float


def ours(snapshot: Snapshot, line: Line, target: Path, *, stop_at: int = 0) -> Ours:
    """Plan to published, every byte verified, flushed to the disk."""
    question = {
        "endpoint": line.endpoint,
        "ca_file": str(line.ca_file or ""),
        "root": str(target),
        "repo_id": f"bench/{snapshot.name}",
        "stop_at": stop_at,
    }
    command = [sys.executable, "-m", "bench.acquire_ours", json.dumps(question)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Ours(**json.loads(done.stdout))


def hub_library(snapshot: Snapshot, line: Line, target: Path) -> float:
    """``hf download``, which verifies sizes and flushes nothing. Its start (imports) counts as it does for a person."""
    home = target.with_name(f"{target.name}-home")
    home.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "HF_HOME": str(home),
        "HF_ENDPOINT": line.endpoint,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "NO_PROXY": "127.0.0.1",
    }
    if line.ca_file is not None:
        environment["SSL_CERT_FILE"] = str(line.ca_file)
    command = [str(Path(sys.executable).with_name("hf")), "download", f"bench/{snapshot.name}"]
    command += ["--local-dir", str(target), "--max-workers", str(_MOST_PARALLEL), "--quiet"]
    took = _timed(command, environment)
    assert sum(path.stat().st_size for path in target.glob("part-*")) == snapshot.bytes
    return took


def curl(snapshot: Snapshot, line: Line, target: Path) -> float:
    """The same bytes, not verified."""
    target.mkdir()
    commit = "0" * 40
    wanted = "".join(
        f'url = "{line.endpoint}/bench/{snapshot.name}/resolve/{commit}/{path}"\noutput = "{target / path}"\n'
        for path in snapshot.paths()
    )
    config = target.with_name(f"{target.name}.curl")
    config.write_text(wanted)
    command = ["curl", "-fL", "--no-progress-meter", "--noproxy", "*", "-K", str(config)]
    command += ["-Z", "--parallel-max", str(_MOST_PARALLEL)]
    if line.ca_file is not None:
        command += ["--cacert", str(line.ca_file)]
    took = _timed(command, dict(os.environ))
    assert sum(path.stat().st_size for path in target.glob("part-*")) == snapshot.bytes
    return took


def openssl(files: list[Path]) -> float:
    """``openssl dgst -sha256`` over the files, two at a time as this machine has two cores."""
    halves = [files[::2], files[1::2]]
    began = time.monotonic()
    running = [
        subprocess.Popen(["openssl", "dgst", "-sha256", *map(str, half)], stdout=subprocess.DEVNULL)
        for half in halves
        if half
    ]
    ended = [process.wait() for process in running]
    assert not any(ended)
    return time.monotonic() - began


def disk(size: int, target: Path) -> float:
    """Write so many bytes and flush them."""
    piece = os.urandom(MIB)
    began = time.monotonic()
    with target.open("wb", buffering=0) as file:
        for _ in range(max(1, size // MIB)):
            file.write(piece)
        os.fsync(file.fileno())
    return time.monotonic() - began


def _timed(command: list[str], environment: dict[str, str]) -> float:
    began = time.monotonic()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began
