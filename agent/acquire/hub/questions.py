"""Runs the process that asks the Hub: in an environment of its own, for so long and no longer, ended for certain."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import agent
from agent.acquire.terms import Brake, Failed

_PASSED_ON = ("PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "LD_LIBRARY_PATH", "TZ")


def environment(home: str) -> dict[str, str]:
    """What the library reads at import: nothing of ours, no implicit token, nothing to write outside ``home``.

    Nothing else is inherited: not HF_TOKEN, HF_HUB_OFFLINE or the proxies of the environment.
    """
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | {
        "HOME": home,
        "TMPDIR": home,
        "HF_HOME": home,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "HF_XET_TELEMETRY_ENABLED": "0",
        "DO_NOT_TRACK": "1",
        "PYTHONPATH": str(Path(agent.__file__).resolve().parent.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUTF8": "1",
        "LANG": "C.UTF-8",
    }


def ask(question: Mapping[str, Any], *, home: str, until: float, brake: Brake) -> bytes | None:
    """What the process prints; None when it is not done at that monotonic instant. Raises ``Stopped`` on the brake."""
    try:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "agent.acquire.hub.inquiry"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a traceback could quote anything
            cwd=home,
            env=environment(home),
        )
    except OSError as error:
        raise Failed("storage_error", f"No process could be started to ask the Hub: {error.strerror}.") from error
    let_go = brake.on_pull(child.kill)
    try:
        printed, _ = child.communicate(json.dumps(question).encode(), max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None
    finally:
        let_go()
        child.kill()
        child.wait()
    brake.check()
    if child.returncode != 0 or not printed:
        raise Failed("source_unavailable", "The process that asks the Hub ended without an answer; it is asked again.")
    return printed
