"""Writing a file that nobody else may read, whole or not at all."""

import os
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Whole or not at all, readable by nobody else."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
