"""Makes or completes the virtual environment in .venv, then goes on in it; runs on any python3, standard library only.

    python3 -I modelforge/bootstrap.py run    what `make up` needs, then `python -m modelforge.up`
    python3 -I modelforge/bootstrap.py tools  what `make test` and `make check` need on top; clean: removes it again

The environment is stamped with the hashes of the requirement files that it was made from, and with a few files of each
package: a second start only compares, and installs again what was damaged.
"""

import csv
import fcntl
import glob
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys

NEEDED = (3, 11)
NEWER = ("python3.14", "python3.13", "python3.12", "python3.11")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENVIRONMENT = os.environ.get("MODELFORGE_VENV") or os.path.join(ROOT, ".venv")
PYTHON = os.path.join(ENVIRONMENT, "bin", "python")
STAMP = os.path.join(ENVIRONMENT, "modelforge-stamp.json")
RUN, TOOLS = ("requirements.txt", "agent/requirements.txt"), ("tests/requirements.txt",)  # TOOLS holds all of RUN


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


def stamped():  # type: () -> dict[str, dict[str, object]]
    """What the environment was made from, and what stands in it; nothing where it is missing, half made or broken."""
    try:
        with open(STAMP) as file:
            stamp = json.load(file)
    except (OSError, ValueError):
        return {}
    if not isinstance(stamp, dict) or not {"made_from", "packages"} <= set(stamp) or not runs():
        return {}
    return stamp


def packages():  # type: () -> dict[str, list[str]]
    """Each package's note of itself, with the files that say whether it is there: few, for each start looks at them."""
    found = {}
    for note in glob.glob(os.path.join(glob.escape(ENVIRONMENT), "lib", "python3*", "site-packages", "*.dist-info")):
        site, name = os.path.split(note)
        with open(os.path.join(note, "RECORD"), newline="", encoding="utf-8") as file:
            paths = [row[0] for row in csv.reader(file) if row]
        chosen = {}  # type: dict[str, str]
        for path in sorted(paths, key=lambda path: (not path.endswith("/__init__.py"), path)):
            folder = path.split("/")[0] if "/" in path else path
            if folder not in ("..", "__pycache__", name):
                chosen.setdefault(folder, path)
        files = [os.path.join(name, "METADATA")] + sorted(chosen.values())
        files = [os.path.relpath(os.path.join(site, path), ENVIRONMENT) for path in files]
        found[os.path.relpath(note, ENVIRONMENT)] = files
    return found


def damaged(stamp):  # type: (dict[str, dict[str, object]]) -> list[str]
    """The packages that miss one of their files."""
    return [
        note
        for note, files in stamp.get("packages", {}).items()
        if not all(os.path.exists(os.path.join(ENVIRONMENT, str(path))) for path in files)  # type: ignore[attr-defined]
    ]


def works(*arguments):  # type: (str) -> bool
    """Whether the environment's Python is there and does this."""
    try:
        return subprocess.call((PYTHON,) + arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def runs():  # type: () -> bool
    """Whether it is new enough, too: an upgrade may have removed it."""
    return works("-IS", "-c", "import sys; sys.exit(sys.version_info < (3, 11))")


def make(files):  # type: (tuple[str, ...]) -> None
    """Make the environment, or complete one that was left half made or is out of date."""
    can_make_environments()
    if not runs() or not works("-I", "-m", "pip", "--version"):  # an interrupted making may have left none
        folder("fault")  # before anything is said to be made
        what = "Making anew" if os.path.exists(ENVIRONMENT) else "Making"
        say("%s the virtual environment in %s" % (what, ENVIRONMENT))
        folder("empty")
        place = os.path.realpath(ENVIRONMENT) if os.path.islink(ENVIRONMENT) else ENVIRONMENT  # venv takes no links
        code, lines = told([sys.executable, "-I", "-m", "venv", place])
        if code != 0:
            fail("".join(lines) + "The environment could not be made. Is the disk full, or %s read-only?" % ROOT)
    if os.path.exists(STAMP):
        os.remove(STAMP)
    for name in files:
        install(name)
    write_agents_command()
    with open(STAMP + ".new", "w") as file:
        json.dump({"made_from": wanted(RUN + files), "packages": packages()}, file, indent=1, sort_keys=True)
    os.rename(STAMP + ".new", STAMP)


def folder(act):  # type: (str) -> None
    """``empty`` or ``remove`` the environment's folder, but nobody else's files; ``fault`` only asks whether it may."""
    sys.path.insert(0, ROOT)
    from modelforge.premises import Premises  # noqa: PLC0415 - as below

    fault = getattr(Premises(ENVIRONMENT, os.path.join(ROOT, ".venv")), act)()
    if fault:
        fail(fault)


def install(name):  # type: (str) -> None
    """Install exactly what a requirement file says, each file proven by its hash; nothing is compiled."""
    with open(os.path.join(ROOT, name)) as file:
        total = sum("==" in line for line in file)
    say("Installing %d packages of %s; the first time this takes a minute or two" % (total, name))
    command = [PYTHON, "-I", "-m", "pip", "install", "--require-hashes", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar", "off", "-r", name]
    code, lines = told(command, total)
    if code != 0:
        faults = [line for line in lines if line.startswith("ERROR")] or lines[-15:]
        fail(
            "".join(faults) + "\nThe packages could not be installed. Without a way to a package index, set pip's own\n"
            "variables (PIP_INDEX_URL, PIP_PROXY, PIP_CERT) and run the command again: it goes on where it was."
        )


def told(command, total=0):  # type: (list[str], int) -> tuple[int, list[str]]
    """Run a command to its end; its exit code and what it said. Of pip's word only the progress is shown meanwhile."""
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True
    )
    lines, count = [], 0  # type: tuple[list[str], int]
    assert process.stdout is not None
    try:
        for line in process.stdout:
            lines.append(line)
            if line.startswith("Collecting "):
                count += 1
                if count % 20 == 0:
                    say("  %d of at most %d" % (count, total))
            elif line.startswith("Installing collected"):
                say("  unpacking")
        return process.wait(), lines
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise


def write_agents_command():  # type: () -> None
    """A script in the environment's bin/ that starts the agent of this folder."""
    path = os.path.join(ENVIRONMENT, "bin", "modelforge-agent")
    with open(path, "w") as file:
        file.write('#!/bin/sh\nPYTHONPATH=%s exec %s -m agent "$@"\n' % (shlex.quote(ROOT), shlex.quote(PYTHON)))
    os.chmod(path, 0o755)


def complete(files):  # type: (tuple[str, ...]) -> None
    """See to it that the environment holds what the requirement files say; where it does, this takes milliseconds."""
    stamp, want = stamped(), wanted(files)
    have, broken = stamp.get("made_from", {}), damaged(stamp)
    if not broken and all(have.get(name) == hash for name, hash in want.items()):
        return
    if sys.argv[1] == "run":
        sys.path.insert(0, ROOT)
        from modelforge import address  # noqa: PLC0415 - an old Python, which has gone on by now, could not read it

        address.free()  # a fault that is told at once, rather than after two minutes
    for note in broken:
        say("%s is damaged and is installed again" % os.path.basename(note).split("-")[0])
        shutil.rmtree(os.path.join(ENVIRONMENT, note), ignore_errors=True)  # else pip takes it for installed
    make(files)


def main():  # type: () -> None
    """Compare, make what is missing, go on."""
    if len(sys.argv) != 2 or sys.argv[1] not in ("run", "tools", "clean"):
        fail("Say what to do: run, tools or clean.")
    new_enough_or_go_on_with_a_newer()
    var = os.path.join(ROOT, "var")
    try:
        os.makedirs(var, mode=0o700, exist_ok=True)
        with open(os.path.join(var, "bootstrap.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two commands at once make one environment
            folder("remove") if sys.argv[1] == "clean" else complete(RUN if sys.argv[1] == "run" else TOOLS)
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted. Run the command again: it goes on where it was.\n")
        sys.exit(130)
    except OSError as fault:
        fail("The environment cannot be completed: %s.\nMend that, or begin anew with: make clean" % fault)
    if sys.argv[1] == "run":
        os.chdir(ROOT)
        os.execv(PYTHON, [PYTHON, "-m", "modelforge.up"])


if __name__ == "__main__":
    main()
