"""The folder of the virtual environment: emptied and removed only where we made it; standard library only."""

import os
import shlex
import shutil
from collections.abc import Iterable

MARKER = "made-by-modelforge"
NOTE = "ModelForge's Makefile made this folder; `make clean` removes it.\n"


class Premises:
    """Ours is what holds our marker, and a folder .venv in the checkout: no variable and no link makes more ours."""

    def __init__(self, folder: str, own: str) -> None:
        self.folder = os.path.abspath(folder)
        self.marker = os.path.join(self.folder, MARKER)
        self.leads_to = os.path.realpath(self.folder) if os.path.islink(self.folder) else ""
        self.is_own = self.folder == own
        self.is_ours = os.path.exists(self.marker) or (self.is_own and not self.leads_to)

    def fault(self) -> str:
        """Why no environment may be made here, and what to do; nothing where it may."""
        if self.is_ours or not self._contents():
            return ""
        if self.is_own:
            return (
                f"{self.folder} is a link to {self.leads_to}, which holds files and was not made by make.\n"
                f"Remove the link (rm {shlex.quote(self.folder)}), or let it lead to a folder that is new or empty."
            )
        return (
            f"MODELFORGE_VENV names {self.folder}, which holds files and was not made by make.\n"
            "Let it name a folder that is new or empty."
        )

    def empty(self) -> str:
        """An empty folder with the marker, to make an environment in; what is said instead where it may not be."""
        if fault := self.fault():
            return fault
        os.makedirs(self.leads_to or self.folder, exist_ok=True)
        with open(self.marker, "w") as file:
            file.write(NOTE)
        _remove(self._contents())
        return ""

    def remove(self) -> str:
        """All of it, the marker last, so that an interrupted one can be gone on with; what is said where it stays."""
        if not os.path.lexists(self.folder):
            return ""
        if not self.is_ours:
            link = f"\nIt is a link to {self.leads_to}: rm {shlex.quote(self.folder)} removes the link alone."
            stays = f"{self.folder} was not made by make, so it stays. Remove it yourself, if it may go."
            return stays + (link if self.leads_to else "")
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
