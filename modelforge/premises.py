"""The folder of the virtual environment: emptied and removed only where we made it; standard library only."""

import os
import shutil
from collections.abc import Iterable

MARKER = "made-by-modelforge"
NOTE = "ModelForge's Makefile made this folder; `make clean` removes it.\n"


class Premises:
    """Ours is what holds our marker, and .venv in the checkout: no wish of a variable makes anything else ours."""

    def __init__(self, folder: str, own: str) -> None:
        self.folder = os.path.abspath(folder)
        self.marker = os.path.join(self.folder, MARKER)
        self.is_ours = os.path.exists(self.marker) or self.folder == own

    def empty(self) -> str:
        """An empty folder with the marker, to make an environment in; what is said instead where it may not be."""
        if self._contents() and not self.is_ours:
            return (
                f"MODELFORGE_VENV names {self.folder}, which holds files and was not made by make.\n"
                "Let it name a folder that is new or empty."
            )
        os.makedirs(self.folder, exist_ok=True)
        with open(self.marker, "w") as file:
            file.write(NOTE)
        _remove(self._contents())
        return ""

    def remove(self) -> str:
        """All of it, the marker last, so that an interrupted one can be gone on with; what is said where it stays."""
        if not os.path.lexists(self.folder):
            return ""
        if not self.is_ours:
            return f"{self.folder} was not made by make, so it stays. Remove it yourself, if it may go."
        _remove(self._contents())
        if os.path.exists(self.marker):
            os.remove(self.marker)
        if os.path.islink(self.folder):
            os.remove(self.folder)
        else:
            os.rmdir(self.folder)
        return ""

    def _contents(self) -> list[str]:
        """What lies in it, the marker aside; nothing where there is no such folder."""
        names = os.listdir(self.folder) if os.path.isdir(self.folder) else []
        return [os.path.join(self.folder, name) for name in names if name != MARKER]


def _remove(paths: Iterable[str]) -> None:
    """Files, links and folders with all that is in them."""
    for path in paths:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.remove(path)
