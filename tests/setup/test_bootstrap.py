"""What `make up` says and does before there is an environment: the faults of real machines, each with its remedy."""

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.setup.checkout import FILES, Checkout

ROOT = Path(__file__).parents[2]
PRESSED = """
import signal
signal.signal(signal.SIGALRM, signal.default_int_handler)
write = sys.stdout.write
def pressed(text):
    if text.startswith("Installing"):
        signal.setitimer(signal.ITIMER_REAL, 0.3)
    return write(text)
sys.stdout.write = pressed
"""
"""Ctrl-C, once the packages are being installed."""
OLD = "sys.version_info = (3, 9, 2, 'final', 0)"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "a checkout")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    checkout = Checkout(tmp_path_factory.mktemp("made") / "a checkout")
    done = checkout.run()
    assert done.returncode == 0, done.stderr
    assert "Making the virtual environment" in done.stdout
    return checkout


def test_an_old_python_is_named_with_the_remedy(checkout: Checkout) -> None:
    done = checkout.run(OLD, PATH="/nowhere")
    assert done.returncode == 1
    assert "needs Python 3.11 or newer" in done.stderr
    assert "is 3.9" in done.stderr
    assert "make up PYTHON=" in done.stderr
    assert "Traceback" not in done.stderr
    assert not checkout.environment.exists()


def test_an_old_python_goes_on_with_a_newer_one_of_the_path(checkout: Checkout, tmp_path: Path) -> None:
    newer = tmp_path / "bin" / "python3.13"
    newer.parent.mkdir()
    newer.write_text('#!/bin/sh\n[ "$1" = -c ] && exit 0\necho "python3.13 was given $*"\n')
    newer.chmod(0o755)
    done = checkout.run(OLD, PATH=str(newer.parent))
    assert done.stdout == f"python3.13 was given -I {checkout.script} tools\n"


def test_an_old_python_under_a_new_name_is_not_taken(checkout: Checkout, tmp_path: Path) -> None:
    shim = tmp_path / "bin" / "python3.13"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\necho 'pyenv: python3.13: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    done = checkout.run(OLD, PATH=str(shim.parent))
    assert done.returncode == 1
    assert "needs Python 3.11 or newer" in done.stderr


@pytest.mark.parametrize("half", ["ensurepip", "venv"])
def test_a_missing_half_of_venv_names_the_package_to_install(half: str, checkout: Checkout) -> None:
    done = checkout.run(f"sys.modules[{half!r}] = None")
    assert done.returncode == 1
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert f"apt install python{version}-venv" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.timeout(240)
def test_a_second_start_only_compares(made: Checkout) -> None:
    done = made.run()
    assert (done.returncode, done.stdout) == (0, "")
    assert set(made.stamp) == set(FILES)


@pytest.mark.timeout(240)
def test_a_changed_requirement_file_completes_the_environment(made: Checkout) -> None:
    before = made.stamp
    (made.folder / "tests/requirements.txt").write_text("# still nothing\n")
    done = made.run()
    assert done.returncode == 0, done.stderr
    assert "Making" not in done.stdout
    assert "tests/requirements.txt" in done.stdout
    assert made.stamp["tests/requirements.txt"] != before["tests/requirements.txt"]


@pytest.mark.timeout(240)
def test_an_interrupted_installation_is_completed(made: Checkout) -> None:
    (made.environment / "modelforge-stamp.json").unlink()
    done = made.run()
    assert done.returncode == 0, done.stderr
    assert "Making" not in done.stdout
    assert set(made.stamp) == set(FILES)


@pytest.mark.timeout(240)
def test_an_environment_whose_python_is_gone_is_made_anew(made: Checkout) -> None:
    python = made.environment / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python3.11")
    done = made.run()
    assert done.returncode == 0, done.stderr
    assert "Making anew the virtual environment" in done.stdout
    assert subprocess.run([python, "-c", ""], check=False).returncode == 0


@pytest.mark.timeout(240)
@pytest.mark.parametrize("lost", ["offered", "offered-1.0.dist-info"])
def test_a_damaged_package_is_installed_again(lost: str, made: Checkout, tmp_path: Path) -> None:
    offer = made.offer(tmp_path / "wheels", "whole = True\n")
    assert made.run(**offer).returncode == 0
    (site,) = made.environment.glob("lib/python3*/site-packages")
    shutil.rmtree(site / lost)
    done = made.run(**offer)
    assert done.returncode == 0, done.stderr
    assert "offered is damaged and is installed again" in done.stdout
    assert (site / lost).exists()
    assert made.run(**offer).stdout == ""


@pytest.mark.timeout(240)
def test_ctrl_c_while_packages_are_installed_is_one_line(made: Checkout, tmp_path: Path) -> None:
    offer = made.offer(tmp_path / "wheels", "another = True\n")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # so that pip still waits when the key is pressed
        offer["PIP_FIND_LINKS"] = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        done = made.run(PRESSED, **offer)
    assert done.returncode == 130
    assert "Interrupted. Run the command again" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert not (made.environment / "modelforge-stamp.json").exists()


def test_a_port_in_use_is_told_before_anything_is_installed(checkout: Checkout) -> None:
    (checkout.folder / "modelforge" / "address.py").write_bytes((ROOT / "modelforge" / "address.py").read_bytes())
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = checkout.run("sys.argv[1] = 'run'", PORT=str(server.getsockname()[1]))
    assert done.returncode == 1
    assert "cannot be opened" in done.stderr
    assert not checkout.environment.exists()


def test_a_python_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        ["make", "-C", str(ROOT), "up", "PYTHON=python3.99"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "There is no python3.99 here" in done.stderr
    assert "make up PYTHON=" in done.stderr


@pytest.mark.timeout(240)
def test_what_cannot_be_installed_is_told_and_not_stamped(made: Checkout) -> None:
    (made.folder / "tests/requirements.txt").write_text("nowhere-to-be-found==1.0 --hash=sha256:" + "0" * 64 + "\n")
    done = made.run(PIP_NO_INDEX="1", PIP_FIND_LINKS="", PIP_CONFIG_FILE="/dev/null")
    assert done.returncode == 1
    assert "nowhere-to-be-found" in done.stderr
    assert "run the command again" in done.stderr
    assert not (made.environment / "modelforge-stamp.json").exists()
