"""No secret stands anywhere but in the one answer that issued it, and where its owner put it."""

import hashlib

import pytest

from tests.canary import evidence
from tests.canary.conftest import Walked
from tests.parts.control_plane import ADMIN_TOKEN

pytestmark = pytest.mark.timeout(300)  # the first test waits for the whole journey

OWNERS_FILES = ("node-credential", "token", "hub-token")
"""Where the agent keeps what it was told, and what the operator wrote."""


def test_every_kind_of_secret_was_issued_and_every_page_seen(walked: Walked) -> None:
    kinds = [secret[:4] for secret in walked.found.secrets.values()]
    assert (kinds.count("mfe_"), kinds.count("mfk_")) == (3, 2)
    assert kinds.count("mfn_") == 6
    node = walked.agents[0].node_id
    wanted = {
        "/admin/",
        "/admin/nodes/node/",
        f"/admin/nodes/node/{node}/change/",
        "/admin/enrollment/enrollmenttoken/",
        "/admin/enrollment/apikey/",
        "/admin/auth/user/",
        "/admin/nodes/auditevent/",
        f"/admin/enrollment/nodecredential/node/{node}/rotate/",
    }
    assert wanted - walked.pages == set()
    broken = [what for what, _ in walked.found.answers if what.endswith("-> 500")]
    assert broken == []


def test_no_answer_shows_a_secret_that_it_did_not_issue(walked: Walked) -> None:
    places = {f"answer {number}: {what}": text for number, (what, text) in enumerate(walked.found.answers)}
    assert walked.found.find(places) == []


def test_no_process_logs_a_secret(walked: Walked) -> None:
    logs = {"control plane": walked.plane.log} | {agent.folder.name: agent.log for agent in walked.agents}
    assert all(logs.values())
    assert "proxy" in logs["by-proxy"], "the agent spoke of its proxy"
    assert walked.found.find(logs) == []


def test_no_command_prints_a_secret(walked: Walked) -> None:
    assert walked.found.find(walked.found.said) == []


def test_no_row_of_any_table_holds_a_secret(walked: Walked) -> None:
    tables = evidence.database(walked.plane)
    assert walked.agents[0].node_id.replace("-", "") in tables["table nodes_node"].replace("-", "")
    assert walked.found.find(tables) == []


def test_the_broker_and_the_cache_hold_no_secret(walked: Walked) -> None:
    assert walked.found.find(evidence.broker(walked.plane)) == []


def test_no_file_but_its_owners_holds_a_secret(walked: Walked) -> None:
    places = evidence.files(walked.plane.folder)
    for agent in walked.agents:
        places |= {
            f"{agent.folder.name}/{name}": text for name, text in evidence.files(agent.folder, *OWNERS_FILES).items()
        }
    assert walked.found.find(places) == []


def test_no_command_line_shows_a_secret(walked: Walked) -> None:
    lines = evidence.processes(walked.plane, *walked.agents)
    assert any("agent" in line for line in lines.values())
    assert walked.found.find(lines) == []


def test_an_agent_that_reads_its_secrets_from_files_has_none_in_its_environment(walked: Walked) -> None:
    by_file, by_proxy = walked.agents
    assert walked.found.find(evidence.environment(by_file.pid)) == []
    assert walked.found.find(evidence.environment(by_proxy.pid)) != [], "this one was given them in its environment"


def test_of_our_own_secrets_handle_and_digest_are_kept_and_nothing_else(walked: Walked) -> None:
    tables = {"mfe": "enrollment_enrollmenttoken", "mfn": "enrollment_nodecredential", "mfk": "enrollment_apikey"}
    for secret in walked.found.secrets.values():
        kind, _, rest = secret.partition("_")
        if kind in tables:
            handle = rest.split("_")[0]
            rows = walked.plane.sql(f"SELECT digest FROM {tables[kind]} WHERE handle = '{handle}'")  # noqa: S608
            assert rows == [(hashlib.sha256(secret.encode()).hexdigest(),)]


def test_the_search_finds_what_is_there(walked: Walked) -> None:
    """The same search, and this time there is something to find: plain, in a cookie, in part."""
    from django.core import signing

    chance = walked.found.secrets["credential by renewal"].split("_")[2]
    places = {
        "plain": f"said {ADMIN_TOKEN}.",
        "session": signing.dumps({"message": ADMIN_TOKEN, "more": "x" * 200}, key="k", compress=True),
        "part": chance,
    }
    assert walked.found.find(places) == [
        "admin token in plain",
        "admin token in session",
        "credential by renewal in part",
    ]
