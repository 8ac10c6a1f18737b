"""Builds the stand-in for the NVIDIA driver library and gives the environment under which a process loads it."""

import functools
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

_SOURCE, _HEADER = (Path(__file__).with_name(name) for name in ("nvml.c", "settings.h"))


@functools.cache
def library() -> Path:
    """The folder to put on LD_LIBRARY_PATH; compiled once for each state of the source, also by several at once."""
    digest = hashlib.sha256(_SOURCE.read_bytes() + _HEADER.read_bytes()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"modelforge-nvml-{os.getuid()}-{digest}"
    built = folder / "libnvidia-ml.so.1"
    if not built.exists():
        folder.mkdir(mode=0o755, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            fresh = Path(scratch) / built.name
            flags = ["-shared", "-fPIC", "-O2", f"-Wl,-soname,{built.name}"]
            subprocess.run(["gcc", *flags, "-o", str(fresh), str(_SOURCE)], check=True, timeout=60)
            fresh.replace(built)
    return folder


def environment(devices: int = 2, **settings: object) -> dict[str, str]:
    """This process's environment with the stand-in on its library path; ``settings`` as nvml.c documents them.

    ``environment(4, faults="*@3=15")`` sets NVML_DEVICES=4 and NVML_FAULTS=*@3=15.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NVML_")}
    path = [str(library()), *filter(None, [environment.get("LD_LIBRARY_PATH", "")])]
    return environment | {"LD_LIBRARY_PATH": ":".join(path), "NVML_DEVICES": str(devices)} | lines(**settings)


def lines(**settings: object) -> dict[str, str]:
    """Settings under their full names; a list is joined as the stand-in reads it."""
    return {
        f"NVML_{name.upper()}": "|".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in settings.items()
    }
