"""``make deploy-test``: the real containers, on whatever Docker Engine there is."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
OPTIONAL = "MODELFORGE_DEPLOY_TEST_OPTIONAL"
EXIT_UNAVAILABLE = 69


def missing() -> str:
    """What is not there that the tests need; "" where all is."""
    for command, remedy in (
        (["docker", "compose", "version"], "Docker with Compose v2 (and the plugin where docker looks for it)"),
        (["docker", "version", "--format", "{{.Server.Version}}"], "Docker Engine that answers (DOCKER_HOST)"),
    ):
        if shutil.which("docker") is None or subprocess.run(command, capture_output=True, check=False).returncode != 0:
            return remedy
    for program, remedy in (("chromium", "chromium (apt install chromium fonts-dejavu-core)"), ("openssl", "openssl")):
        if shutil.which(program) is None:
            return remedy
    return ""


def main() -> int:
    """Run them; without an engine say so, and fail unless that was declared to be all right."""
    lacks = missing()
    if lacks:
        sys.stderr.write(f"The deployment was NOT tested: there is no {lacks}.\n")
        if os.environ.get(OPTIONAL):
            return 0
        sys.stderr.write(f"Set {OPTIONAL}=1 where that is all right.\n")
        return EXIT_UNAVAILABLE
    chosen = sys.argv[1:] or ["tests/deploy"]
    command = [sys.executable, "-m", "pytest", "--timeout", "900", "--durations", "12", *chosen]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | {"MODELFORGE_TEST_DATABASE": "sqlite"}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
