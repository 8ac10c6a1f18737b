"""Makes the secrets of the base stack once, each in a file of its own, and keeps them; runs before everything else."""

import os
import secrets
import sys
from pathlib import Path
from urllib.parse import quote

DATABASE = Path("/run/modelforge/database")
"""Read by PostgreSQL too, which runs under a user of its own: the files are open to whoever mounts the volume."""
KEYS = Path("/run/modelforge/keys")
"""Read by the control plane alone."""

OPERATOR_API_KEY = "MODELFORGE_OPERATOR_API_KEY"
SHORTEST = 32
EXIT_CONFIG = 78


def write(path: Path, text: str, mode: int) -> None:
    """The whole text or nothing, and on the disk before anybody depends on it."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def keep(path: Path, mode: int) -> str:
    """What the file holds; where there is none yet, a fresh random text."""
    if not path.exists():
        write(path, secrets.token_urlsafe(48), mode)
    return path.read_text(encoding="utf-8").strip()


def main() -> int:
    """Make what is missing; an operator's own API key replaces the kept one."""
    wanted = os.environ.get(OPERATOR_API_KEY, "").strip()
    if wanted and len(wanted) < SHORTEST:
        sys.stderr.write(f"{OPERATOR_API_KEY} has {len(wanted)} characters; give it at least {SHORTEST} random ones.\n")
        return EXIT_CONFIG
    try:
        password = keep(DATABASE / "password", 0o444)
        write(DATABASE / "url", f"postgresql://modelforge:{quote(password)}@postgres:5432/modelforge", 0o444)
        keep(KEYS / "secret-key", 0o400)
        if wanted:
            write(KEYS / "operator-api-key", wanted, 0o400)
        keep(KEYS / "operator-api-key", 0o400)
    except OSError as fault:
        sys.stderr.write(
            f"{fault.filename} cannot be used by uid {os.geteuid()}: {fault.strerror}. "
            f"Where it is a folder of yours: chown {os.geteuid()}:{os.getegid()} it.\n"
        )
        return EXIT_CONFIG
    sys.stdout.write("The secrets are there.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
