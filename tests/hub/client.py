"""The real Hub library in a process of its own, so that it reads its environment as it does at import."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hub.hub import Hub

ENVIRONMENT = {
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_ETAG_TIMEOUT": "5",
    "HF_HUB_DOWNLOAD_TIMEOUT": "5",
    "NO_PROXY": "127.0.0.1",
}
_PROGRAM = """
import json, sys
import huggingface_hub
name, arguments = json.loads(sys.argv[1])
try:
    answer = getattr(huggingface_hub, name)(**arguments)
except Exception as error:
    print(json.dumps({"raised": [kind.__name__ for kind in type(error).__mro__], "said": str(error)}))
else:
    print(json.dumps({"answer": answer if isinstance(answer, str) else repr(answer)}))
"""


@dataclass(frozen=True)
class Said:
    """How a call ended."""

    answer: str = ""
    raised: tuple[str, ...] = ()  # the exception's class and all above it
    said: str = ""


def call(hub: Hub, home: Path, name: str, **arguments: Any) -> Said:
    """One public function of the library, asked of this Hub with an empty home."""
    kept = {variable: text for variable, text in os.environ.items() if variable in {"PATH", "LANG"}}
    environment = kept | ENVIRONMENT | {"HF_ENDPOINT": hub.url, "HF_HOME": str(home), "HOME": str(home)}
    if hub.ca_file is not None:
        environment["SSL_CERT_FILE"] = str(hub.ca_file)
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps([name, arguments])],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    return Said(told.get("answer", ""), tuple(told.get("raised", ())), told.get("said", ""))
