"""``make lock``: compiles the short .in files into requirement files with versions and hashes, naming no registry."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = ("requirements", "agent/requirements", "tests/requirements")
OPTIONS = ["--universal", "--python-version", "3.11", "--generate-hashes", "--no-header", "--no-annotate"]

_ADDRESS = re.compile(
    r"(?i)\b(?:https?|file|ftp)://|^\s*(?:--index-url|--extra-index-url|--find-links|-i|-f)\b", re.MULTILINE
)
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)", re.MULTILINE)


def compile_all() -> None:
    """Write the three lock files; the tests' file, which holds all, comes first and the others follow its versions."""
    for name in reversed(FILES):
        constraint = [] if name == "tests/requirements" else ["--constraints", "tests/requirements.txt"]
        command = ["uv", "pip", "compile", "--quiet", "--no-emit-index-url", *OPTIONS, *constraint, f"{name}.in"]
        subprocess.run([sys.executable, "-m", *command, "--output-file", f"{name}.txt"], cwd=ROOT, check=True)


def faults() -> list[str]:
    """What is wrong with the lock files: an address in one, a pin without a hash, or two versions of one package."""
    found, versions = [], dict[str, tuple[str, str]]()
    for name in FILES:
        text = (ROOT / f"{name}.txt").read_text(encoding="utf-8")
        found += [f"{name}.txt names an address: {match.group(0).strip()}" for match in _ADDRESS.finditer(text)]
        for package, version in _PIN.findall(text):
            where, other = versions.setdefault(package, (name, version))
            if version != other:
                found.append(f"{package} is {other} in {where}.txt and {version} in {name}.txt; run `make lock`")
        pins, hashed = len(_PIN.findall(text)), len(re.findall(r"^\S.*\\\n\s+--hash=", text, re.MULTILINE))
        if pins != hashed:
            found.append(f"{name}.txt pins {pins} packages and has hashes for {hashed}")
    everything = set(_PIN.findall((ROOT / "tests/requirements.txt").read_text(encoding="utf-8")))
    for name in FILES[:2]:
        missing = set(_PIN.findall((ROOT / f"{name}.txt").read_text(encoding="utf-8"))) - everything
        found += [f"tests/requirements.txt lacks {package}=={version} of {name}.txt" for package, version in missing]
    return found


if __name__ == "__main__":
    if sys.argv[1:] != ["--check"]:
        compile_all()
    sys.exit("\n".join(faults()) or 0)
