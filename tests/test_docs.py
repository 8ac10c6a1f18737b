"""The documentation says what the code does: names, links and examples are compared with their source."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from agent import protocol, variables, wire
from modelforge import errors, urls
from tests.wire.said import SAID

ROOT = Path(__file__).parents[1]
PROTOCOL = (ROOT / "docs/protocol.md").read_text(encoding="utf-8")
OPERATING = (ROOT / "docs/operating.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
DECISIONS = (ROOT / "docs/decisions.md").read_text(encoding="utf-8")
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])

READ_BY = ["modelforge/*.py", "agent/*.py", "compose/*.yml", "Makefile", "tests/parts/start.py"]
EXAMPLE = re.compile(r"<!-- wire: (\w+) -->\n```json\n(.*?)```", re.DOTALL)


def _names(text: str) -> set[str]:
    """The variables in a text, less their file twins and the beginnings of patterns."""
    found = set(re.findall(r"\bMODELFORGE_[A-Z_]+\b", text))
    return {name for name in found if not name.endswith("_") and name.removesuffix("_FILE") == name}


def _known() -> set[str]:
    """The variables that the code knows: each stands in it as a whole word."""
    files = [file for pattern in READ_BY for file in ROOT.glob(pattern)]
    known = {name for name in variables.KNOWN if not name.endswith("_FILE")}
    return known.union(*(_names(file.read_text(encoding="utf-8")) for file in files))


@pytest.mark.parametrize("code", list(protocol.Code))
def test_every_code_stands_in_the_protocol_with_its_status(code: protocol.Code) -> None:
    rows = re.findall(rf"^\| `{code}` \| (\d+) \|", PROTOCOL, re.MULTILINE)
    assert rows == [str(int(errors.STATUS[code]))]


@pytest.mark.parametrize(("prefix", "patterns"), [("agent/", urls.agent), ("admin/", urls.admins), ("", urls.readers)])
def test_every_endpoint_stands_in_the_protocol(prefix: str, patterns: list[object]) -> None:
    paths = [re.sub(r"<\w+:(\w+)>", r"{\1}", f"{protocol.API}/{prefix}{entry.pattern}") for entry in patterns]  # type: ignore[attr-defined]
    missing = [path for path in paths if not re.search(rf"(GET|POST|PUT|PATCH) {re.escape(path)}`", PROTOCOL)]
    assert not missing


def test_every_variable_that_the_code_knows_stands_in_operating() -> None:
    assert not _known() - _names(OPERATING)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_variable_that_a_page_names_is_known_to_the_code(page: Path) -> None:
    assert not _names(page.read_text(encoding="utf-8")) - _known()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", page.read_text(encoding="utf-8"))
    broken = []
    for path, anchor in links:
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor[1:] not in _anchors(target)):
            broken.append(path + anchor)
    assert not broken


def _anchors(page: Path) -> set[str]:
    """The anchors that the headings of a page make."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", ["requirements.in", "agent/requirements.in", "tests/requirements.in"])
def test_the_decisions_say_why_each_package_is_there(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    packages = [re.split(r"[\[<>=]", line)[0] for line in lines if line and line[0] not in "#-"]
    assert packages
    assert not [package for package in packages if not re.search(rf"(?<![\w-]){package}(?![\w-])", DECISIONS)]


def test_the_protocol_shows_every_message_of_an_agent() -> None:
    shown = [name for name, _ in EXAMPLE.findall(PROTOCOL)]
    assert sorted(shown) == sorted({type(said).__name__ for said in SAID.values()})


@pytest.mark.parametrize(("name", "text"), EXAMPLE.findall(PROTOCOL), ids=[m[0] for m in EXAMPLE.findall(PROTOCOL)])
def test_an_example_is_just_what_the_wire_type_says(name: str, text: str) -> None:
    message = msgspec.json.decode(text, type=getattr(wire, name))
    assert json.loads(wire.encode(message)) == json.loads(text)


def test_the_digest_of_the_example_is_that_of_its_facts() -> None:
    examples = dict(EXAMPLE.findall(PROTOCOL))
    facts = msgspec.json.decode(examples["Facts"], type=wire.Facts)
    assert json.loads(examples["FactsReply"])["facts_digest"] == wire.digest(facts)


@pytest.mark.parametrize("package", ["agent", "nodes", "enrollment", "artifacts", "modelforge"])
def test_every_file_that_the_architecture_names_is_there(package: str) -> None:
    table = re.search(rf"^\| floor \d, `{package}/` \|.*?\n\n", ARCHITECTURE, re.DOTALL | re.MULTILINE)
    assert table is not None
    cells = [line.split("|")[1] for line in table[0].splitlines()[2:] if line]
    names = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert names
    assert not [name for name in names if not _stands(ROOT / package, name)]


def _stands(folder: Path, name: str) -> bool:
    return any(folder.glob(name if name.endswith("/") else f"{name}.py"))
