"""A checkout whose environment can be made without a package index."""

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = ("requirements.txt", "agent/requirements.txt", "tests/requirements.txt")


class Checkout:
    """A folder with the real bootstrap.py and requirement files that ask for nothing, so that no index is needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = folder / ".venv"
        (folder / "modelforge").mkdir(parents=True)
        self.script = folder / "modelforge" / "bootstrap.py"
        for name in ("bootstrap.py", "premises.py"):
            (folder / "modelforge" / name).write_bytes((ROOT / "modelforge" / name).read_bytes())
        for name in FILES:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("# nothing\n")

    def run(self, before: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        """The script as the Makefile starts it; ``before`` is Python that makes the machine a worse one."""
        start = f"import runpy, sys; sys.argv = ['bootstrap.py', 'tools']; {before}\n"
        start += f"runpy.run_path({str(self.script)!r}, run_name='__main__')"
        kept = {name: text for name, text in os.environ.items() if not name.startswith("MODELFORGE_")}
        return subprocess.run(
            [sys.executable, "-I", "-c", start],
            env=kept | variables,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    @property
    def stamp(self) -> dict[str, str]:
        """What the environment was made from."""
        found: dict[str, str] = json.loads((self.environment / "modelforge-stamp.json").read_text())["made_from"]
        return found

    def offer(self, folder: Path, content: str) -> dict[str, str]:
        """Ask for one package, `offered`, which lies in ``folder``; the variables that lead pip there alone."""
        folder.mkdir()
        wheel = folder / "offered-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as file:
            file.writestr("offered/__init__.py", content)
            file.writestr("offered-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: offered\nVersion: 1.0\n")
            file.writestr(
                "offered-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            file.writestr("offered-1.0.dist-info/RECORD", "offered/__init__.py,,\noffered-1.0.dist-info/RECORD,,\n")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        (self.folder / "tests/requirements.txt").write_text(f"offered==1.0 --hash=sha256:{digest}\n")
        return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "PIP_CONFIG_FILE": "/dev/null"}
