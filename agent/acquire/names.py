"""Which file names a repository may bring: what could escape, hide, mislead or clash on some file system may not."""

import re
import unicodedata
from collections.abc import Iterable

MAX_NAME_BYTES = 240  # of one folder or file; most file systems take 255, and temporary endings want room
MAX_PATH_BYTES = 1024
MAX_DEPTH = 32

RESERVED = frozenset({".git", ".cache", ".modelforge-root", ".partial", ".removed"})
"""Names that git, the Hub's library or we ourselves keep books under, at any depth and in any case."""
OUR_MANIFEST = "modelforge-manifest.json"

# Control and formatting characters (line breaks, bidirectional overrides, zero width), surrogates, line separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_DRIVE = re.compile(r"[A-Za-z]:")


def hostile(path: str) -> str:
    """Why that name must not be brought; "" where it may."""
    if not path:
        return "it is empty"
    if any(unicodedata.category(char) in _HIDDEN for char in path):
        return "it holds control or invisible characters"
    if len(path.encode()) > MAX_PATH_BYTES:
        return f"it is longer than {MAX_PATH_BYTES} bytes"
    if "\\" in path:
        return "it holds a backslash"
    if path.startswith("/") or _DRIVE.match(path):
        return "it is absolute"
    if path.startswith("~"):
        return "it starts with ~"
    if path.partition("/")[0].casefold() == OUR_MANIFEST:
        return "that name is kept for ModelForge's own manifest"
    names = path.split("/")
    if len(names) > MAX_DEPTH:
        return f"it lies deeper than {MAX_DEPTH} folders"
    return next((why for name in names if (why := _hostile_name(name))), "")


def _hostile_name(name: str) -> str:
    if name in ("", ".", ".."):
        return "it holds an empty name, . or .."
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"a name in it is longer than {MAX_NAME_BYTES} bytes"
    if name != name.strip() or name.endswith("."):
        return "a name in it begins or ends with a space, or ends with a dot"
    if name.startswith("-"):
        return "a name in it starts with - and would be read as an option"
    if _folded(name) in RESERVED:
        return f"{name} is reserved"
    return ""


def clash(paths: Iterable[str]) -> tuple[str, str] | None:
    """Two of these names that cannot both be made: equal but for case or Unicode form, or a file and a folder."""
    files: dict[str, str] = {}
    folders: dict[str, str] = {}  # folded folder -> as it was first spelled
    for path in paths:
        key = _folded(path)
        if key in files:
            return files[key], path
        if key in folders:
            return folders[key], path
        files[key] = path
        at = path.find("/")
        while at >= 0:
            folder = path[:at]
            known = folders.setdefault(_folded(folder), folder)
            if known != folder:
                return known, path
            if _folded(folder) in files:
                return files[_folded(folder)], path
            at = path.find("/", at + 1)
    return None


def _folded(text: str) -> str:
    """As a file system that ignores case and Unicode forms sees it."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())
