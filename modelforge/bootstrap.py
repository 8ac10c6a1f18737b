"""Makes or completes the virtual environment in .venv, then goes on in it; runs on any python3, standard library only.

    python3 -I modelforge/bootstrap.py run    what `make up` needs, then `python -m modelforge.up`
    python3 -I modelforge/bootstrap.py tools  what `make test` and `make check` need on top

The environment is stamped with the hashes of the requirement files that it was made from: a second start only compares.
"""

import fcntl
import hashlib
import json
import os
import shlex
import subprocess
import sys

NEEDED = (3, 11)
NEWER = ("python3.14", "python3.13", "python3.12", "python3.11")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENVIRONMENT = os.environ.get("MODELFORGE_VENV") or os.path.join(ROOT, ".venv")
PYTHON = os.path.join(ENVIRONMENT, "bin", "python")
STAMP = os.path.join(ENVIRONMENT, "modelforge-stamp.json")
RUN = ("requirements.txt", "agent/requirements.txt")
TOOLS = ("tests/requirements.txt",)  # holds all of RUN, at the same versions


def say(text):  # type: (str) -> None
    """A line for whoever waits."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def fail(text):  # type: (str) -> None
    """Say what is wrong and what to do, and end."""
    sys.stderr.write("\n" + text + "\n")
    sys.exit(1)


def new_enough_or_go_on_with_a_newer():  # type: () -> None
    """Python 3.11 or newer: this one, else the newest that the PATH holds."""
    if sys.version_info[:2] >= NEEDED:
        return
    for name in NEWER:
        probe = [name, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        try:
            found = subprocess.call(probe, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0
        except OSError:
            found = False
        if found:
            os.execvp(name, [name, "-I", os.path.abspath(__file__)] + sys.argv[1:])
    fail(
        "ModelForge needs Python 3.11 or newer; %s is %d.%d, and the PATH holds no newer one.\n"
        "Install one (Debian 12 and Ubuntu 24.04: apt install python3 python3-venv), or name one:\n"
        "    make up PYTHON=/path/to/python3.11" % ((sys.executable,) + sys.version_info[:2])
    )


def can_make_environments():  # type: () -> None
    """Debian and Ubuntu keep half of the module venv in a package of its own."""
    try:
        import ensurepip  # noqa: F401, PLC0415 - its absence is what is looked for
        import venv  # noqa: F401, PLC0415
    except ImportError as fault:
        version = "%d.%d" % sys.version_info[:2]
        fail(
            "This Python cannot make virtual environments: %s.\n"
            "Debian and Ubuntu keep that in a package of its own: apt install python%s-venv" % (fault, version)
        )


def wanted(files):  # type: (tuple[str, ...]) -> dict[str, str]
    """The hash of each requirement file."""
    hashes = {}
    for name in files:
        with open(os.path.join(ROOT, name), "rb") as file:
            hashes[name] = hashlib.sha256(file.read()).hexdigest()
    return hashes


def stamped():  # type: () -> dict[str, str]
    """The hashes that the environment was made from; none where it is missing, half made or broken."""
    try:
        with open(STAMP) as file:
            stamp = json.load(file)
    except (OSError, ValueError):
        return {}
    return dict(stamp) if isinstance(stamp, dict) and runs() else {}


def runs():  # type: () -> bool
    """Whether the environment's Python is there, works, and is new enough: it may have been removed by an upgrade."""
    probe = [PYTHON, "-IS", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
    try:
        return subprocess.call(probe, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def make(files):  # type: (tuple[str, ...]) -> None
    """Make the environment, or complete one that was left half made or is out of date."""
    can_make_environments()
    if not runs() or not has_pip():
        half = os.path.exists(ENVIRONMENT)
        say("%s the virtual environment in %s" % ("Making anew" if half else "Making", ENVIRONMENT))
        command = [sys.executable, "-I", "-m", "venv", "--clear", ENVIRONMENT]
        if subprocess.call(command) != 0:
            fail(
                "The environment could not be made; the lines above say why. Is the disk full, or %s read-only?" % ROOT
            )
    if os.path.exists(STAMP):
        os.remove(STAMP)
    for name in files:
        install(name)
    write_command("modelforge-agent", "agent")
    with open(STAMP + ".new", "w") as file:
        json.dump(wanted(RUN + files), file, indent=1, sort_keys=True)
    os.rename(STAMP + ".new", STAMP)


def has_pip():  # type: () -> bool
    """Whether pip works there; an interrupted making may have left none."""
    probe = [PYTHON, "-I", "-m", "pip", "--version"]
    return subprocess.call(probe, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0


def install(name):  # type: (str) -> None
    """Install exactly what a requirement file says, each file proven by its hash; nothing is compiled."""
    with open(os.path.join(ROOT, name)) as file:
        total = sum("==" in line for line in file)
    say("Installing %d packages of %s; the first time this takes a minute or two" % (total, name))
    command = [PYTHON, "-I", "-m", "pip", "install", "--require-hashes", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar", "off", "-r", name]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True
    )
    lines, count = [], 0  # type: tuple[list[str], int]
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        if line.startswith("Collecting "):
            count += 1
            if count % 20 == 0:
                say("  %d of at most %d" % (count, total))
        elif line.startswith("Installing collected"):
            say("  unpacking")
    if process.wait() != 0:
        told = [line for line in lines if line.startswith("ERROR")] or lines[-15:]
        fail(
            "".join(told) + "\nThe packages could not be installed. Without a way to a package index, set pip's own\n"
            "variables (PIP_INDEX_URL, PIP_PROXY, PIP_CERT) and run the command again: it goes on where it was."
        )


def write_command(name, module):  # type: (str, str) -> None
    """A script in the environment's bin/ that starts a module of this folder."""
    path = os.path.join(ENVIRONMENT, "bin", name)
    with open(path, "w") as file:
        file.write('#!/bin/sh\nPYTHONPATH=%s exec %s -m %s "$@"\n' % (shlex.quote(ROOT), shlex.quote(PYTHON), module))
    os.chmod(path, 0o755)


def main():  # type: () -> None
    """Compare, make what is missing, go on."""
    kinds = {"run": RUN, "tools": TOOLS}
    if len(sys.argv) != 2 or sys.argv[1] not in kinds:
        fail("Say what the environment is for: run, or tools.")
    new_enough_or_go_on_with_a_newer()
    files = kinds[sys.argv[1]]
    var = os.path.join(ROOT, "var")
    os.makedirs(var, mode=0o700, exist_ok=True)
    with open(os.path.join(var, "bootstrap.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two commands at once make one environment
        have, want = stamped(), wanted(files)
        if any(have.get(name) != hash for name, hash in want.items()):
            make(files)
    if sys.argv[1] == "run":
        os.chdir(ROOT)
        os.execv(PYTHON, [PYTHON, "-m", "modelforge.up"])


if __name__ == "__main__":
    main()
