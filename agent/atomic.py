"""Writing a small file so that a reader or a power cut sees the old content or the new one, never a half of either."""

import os
import tempfile
from pathlib import Path


def write(path: Path, text: str, *, durable: bool) -> None:
    """Temporary file in the same folder, (fsync), rename over ``path``, (fsync of the folder); mode 0600.

    ``durable`` asks for the two fsyncs: yes for what must outlive a power cut, no for what lives in memory anyway.
    Raises OSError and leaves no temporary file behind.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mkstemp gives mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames in ``folder`` outlive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
