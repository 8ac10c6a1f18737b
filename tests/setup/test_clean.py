"""`make clean` removes the environment that make made, wherever that is, and nobody else's files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.setup.checkout import ROOT, Checkout


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "a checkout")


def make(checkout: Checkout, **variables: str) -> subprocess.CompletedProcess[str]:
    """`make clean` of the real Makefile there."""
    (checkout.folder / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("MODELFORGE_", "MAKE"))}
    return subprocess.run(
        ["make", "-s", "-C", str(checkout.folder), "clean", f"PYTHON={sys.executable}"],
        env=kept | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.timeout(240)
def test_make_clean_removes_the_environment_that_make_uses(checkout: Checkout, tmp_path: Path) -> None:
    elsewhere = {"MODELFORGE_VENV": str(tmp_path / "elsewhere")}
    assert checkout.run(**elsewhere).returncode == 0
    assert (tmp_path / "elsewhere" / "bin" / "python").exists()
    (checkout.environment / "half").mkdir(parents=True)
    assert make(checkout, **elsewhere).returncode == 0
    assert not (tmp_path / "elsewhere").exists()
    assert checkout.environment.exists()
    assert make(checkout).returncode == 0
    assert not checkout.environment.exists()


@pytest.mark.parametrize("linked", [False, True], ids=["folder", "link"])
def test_make_clean_leaves_what_make_did_not_make(linked: bool, checkout: Checkout, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "pyvenv.cfg").write_text("somebody's own environment\n")
    named = tmp_path / "link" if linked else home
    if linked:
        named.symlink_to(home)
    done = make(checkout, MODELFORGE_VENV=str(named))
    assert done.returncode != 0
    assert f"{named} was not made by make, so it stays" in done.stderr
    assert (home / "pyvenv.cfg").exists()


def test_an_environment_is_not_made_among_somebody_elses_files(checkout: Checkout, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "thesis").mkdir(parents=True)
    done = checkout.run(MODELFORGE_VENV=str(home))
    assert done.returncode == 1
    assert f"MODELFORGE_VENV names {home}, which holds files" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Making" not in done.stdout
    assert [path.name for path in home.iterdir()] == ["thesis"]


@pytest.mark.timeout(240)
def test_an_environment_that_was_half_made_elsewhere_is_made_anew(checkout: Checkout, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "bin").mkdir(parents=True)
    (elsewhere / "made-by-modelforge").touch()
    done = checkout.run(MODELFORGE_VENV=str(elsewhere))
    assert done.returncode == 0, done.stderr
    assert "Making anew" in done.stdout
    assert (elsewhere / "bin" / "python").exists()


@pytest.fixture
def linked(checkout: Checkout, tmp_path: Path) -> Path:
    """Somebody's folder, which .venv in the checkout is a link to."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("precious\n")
    checkout.environment.symlink_to(mine)
    return mine


def test_make_clean_leaves_what_a_link_named_venv_leads_to(checkout: Checkout, linked: Path) -> None:
    done = make(checkout)
    assert done.returncode != 0
    assert f"{checkout.environment} was not made by make, so it stays" in done.stderr
    assert f"It is a link to {linked}: rm '{checkout.environment}' removes the link alone." in done.stderr
    assert (linked / "thesis.txt").read_text() == "precious\n"


def test_no_environment_is_made_among_the_files_that_a_link_named_venv_leads_to(
    checkout: Checkout, linked: Path
) -> None:
    done = checkout.run()
    assert done.returncode == 1
    assert f"{checkout.environment} is a link to {linked}, which holds files" in done.stderr
    assert f"rm '{checkout.environment}'" in done.stderr
    assert "Making" not in done.stdout
    assert [path.name for path in linked.iterdir()] == ["thesis.txt"]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("there", [True, False], ids=["empty", "not-there"])
def test_what_make_itself_made_behind_a_link_named_venv_is_removed(
    there: bool, checkout: Checkout, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    if there:
        scratch.mkdir()
    checkout.environment.symlink_to(scratch)
    done = checkout.run()
    assert done.returncode == 0, done.stderr
    assert (scratch / "bin" / "python").exists()
    assert make(checkout).returncode == 0
    assert not os.path.lexists(checkout.environment)
    assert list(scratch.iterdir()) == []
