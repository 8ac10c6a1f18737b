"""The node list: right between two sweeps, filtered, escaped, at the same cost for ten nodes and ten thousand."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from nodes.models import Accelerator, ControlPlane, Heartbeat, Node
from tests.nodes import browsing
from tests.nodes.browsing import instant, page_of, words
from tests.nodes.hearing import Agent
from tests.nodes.publishing import facts, gpu, publish

pytestmark = pytest.mark.django_db

LIST = "/admin/nodes/node/"


def row(client: Client, query: str = "") -> str:
    """What the list says."""
    return words(client.get(LIST + query))


def test_an_empty_fleet_offers_to_enroll(mara: Client) -> None:
    response = mara.get(LIST)
    assert "No node yet: enroll one" in words(response)
    assert reverse("admin:enrollment_enrollmenttoken_add") in response.content.decode()


def test_a_node_that_beats_is_online(mara: Client, make_node: Callable[..., Node]) -> None:
    Agent(make_node(), version="0.9.7").beat(instant() - timedelta(seconds=4))
    said = row(mara)
    assert "online" in said
    assert "0.9.7 protocol 1" in said


@pytest.mark.parametrize(("silent_for", "shown"), [(40, "online"), (50, "stale"), (100, "offline")])
def test_silence_shows_before_any_sweep(
    silent_for: int, shown: str, mara: Client, make_node: Callable[..., Node]
) -> None:
    Agent(make_node(display_name="server01")).beat(instant() - timedelta(seconds=silent_for))
    assert Heartbeat.objects.get().liveness == "online"
    for state in ("online", "stale", "offline"):
        assert ("server01" in row(mara, f"?liveness={state}")) is (state == shown)


def test_a_node_that_was_never_heard_is_offline_and_says_so(mara: Client, make_node: Callable[..., Node]) -> None:
    make_node(display_name="server01")
    assert "never heard" in row(mara, "?liveness=offline")


def test_the_gpus_are_counted_by_model(mara: Client, make_node: Callable[..., Node]) -> None:
    node, now = make_node(), instant()
    Agent(node).beat(now)
    publish(node, facts([gpu(0), gpu(1)]), now)
    said = row(mara)
    assert "2 × RTX 4080" in said
    assert "32 GiB" in said


def test_a_missing_gpu_is_flagged_and_not_counted(mara: Client, make_node: Callable[..., Node]) -> None:
    node, now = make_node(), instant()
    Agent(node).beat(now)
    publish(node, facts([gpu(0), gpu(1)]), now)
    publish(node, facts([gpu(0)]), now)
    said = row(mara, "?flag=missing")
    assert "1 × RTX 4080" in said
    assert "1 missing" in said


@pytest.mark.parametrize(
    ("flag", "fields"),
    [
        ("conflict", {"identity_conflict_at": browsing.instant()}),
        ("protocol", {"protocol_refused_at": browsing.instant(), "protocol_refused": "9"}),
        ("refused", {"refused_at": browsing.instant(), "refused_code": "node_disabled"}),
        ("rotation", {"credential_state": "rotating", "rotation_ends_at": browsing.instant()}),
        ("tls", {"facts": {"agent": {"tls_verify": False}}}),
        ("runtime", {"facts": {"gpu_runtime": {"state": "failed", "message": "x"}}}),
    ],
)
def test_a_flag_filters_and_shows(
    flag: str, fields: dict[str, object], mara: Client, make_node: Callable[..., Node]
) -> None:
    make_node(display_name="odd-one", **fields)
    make_node(display_name="plain-one", facts={"agent": {"tls_verify": True}, "gpu_runtime": {"state": "ready"}})
    said = row(mara, f"?flag={flag}")
    assert "odd-one" in said
    assert "plain-one" not in said


@pytest.mark.parametrize(("off", "flagged"), [(59, False), (-59, False), (61, True), (-61, True)])
def test_a_clock_off_by_more_than_a_minute_is_flagged(
    off: int, flagged: bool, mara: Client, make_node: Callable[..., Node]
) -> None:
    """Field case 21."""
    Agent(make_node(display_name="server01"), clock_off=timedelta(seconds=off)).beat(instant())
    assert ("server01" in row(mara, "?flag=skew")) is flagged


def test_the_retired_are_shown_only_when_asked_for(mara: Client, make_node: Callable[..., Node]) -> None:
    make_node(display_name="old-server", retired_at=instant())
    assert "old-server" not in row(mara)
    assert "old-server" in row(mara, "?service=any")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?service=disabled", "off"),
        ("?service=enabled", "lab-one"),
        ("?role=lab", "lab-one"),
        ("?eligible=lab", "lab-one"),
        ("?credential=revoked", "revoked-one"),
        ("?q=lab-o", "lab-one"),
        ("?q=10.1.2.3", "off"),
    ],
)
def test_the_filters_and_the_search_narrow(
    query: str, found: str, mara: Client, make_node: Callable[..., Node]
) -> None:
    make_node(display_name="off", enabled=False, address="10.1.2.3")
    make_node(display_name="lab-one", role="lab", lab_eligible=True)
    make_node(display_name="revoked-one", credential_state="revoked", enabled=query != "?service=enabled")
    shown = {node.display_name for node in mara.get(LIST + query).context["cl"].result_list}
    assert shown == {found}


@pytest.mark.parametrize("query", ["?liveness=x", "?flag=x", "?o=99", "?p=zz", "?service=x", "?credential=x"])
def test_a_made_up_filter_breaks_nothing(query: str, mara: Client, make_node: Callable[..., Node]) -> None:
    make_node()
    assert mara.get(LIST + query, follow=True).status_code == 200


def test_what_a_node_says_is_never_markup(mara: Client, make_node: Callable[..., Node]) -> None:
    """Field case 15."""
    node = make_node(display_name="<script>alert(1)</script>", role="<b>r</b>", labels={"a": "<i>v</i>"})
    Node.objects.update(hostname="<img src=x onerror=alert(2)>", agent_version="<u>1</u>", address="<s>")
    for path in (LIST, page_of(node), "/admin/"):
        seen = mara.get(path).content.decode()
        assert not [bad for bad in ("<script>alert", "<img src=x", "<b>r", "<i>v", "<u>1", "<s>") if bad in seen]
    assert "&lt;img src=x onerror=alert(2)&gt;" in mara.get(page_of(node)).content.decode()


def a_fleet(size: int) -> None:
    """So many nodes, online, each with a GPU and with something odd."""
    now = instant()
    nodes = Node.objects.bulk_create(
        [
            Node(
                display_name=f"n{number:05}",
                hostname=f"n{number}",
                enrolled_at=now,
                updated_at=now,
                refused_code="credential_revoked",
                refused_at=now,
                role=f"role-{number % 7}",
                facts={"agent": {"tls_verify": False}, "gpu_runtime": {"state": "ready"}},
            )
            for number in range(size)
        ]
    )
    later = now + timedelta(hours=1)
    hearts = [
        Heartbeat(node=node, liveness="online", last_heard_at=now, stale_at=later, offline_at=later) for node in nodes
    ]
    Heartbeat.objects.bulk_create(hearts)
    Accelerator.objects.bulk_create(
        [
            Accelerator(
                node=node,
                key="GPU-1",
                identity="uuid",
                kind="gpu",
                index=0,
                model="H200",
                memory_bytes=2**30,
                memory_model="dedicated",
                facts={},
                first_seen_at=now,
                last_seen_at=now,
            )
            for node in nodes
        ]
    )


def test_the_pages_ask_as_often_for_ten_thousand_nodes_as_for_ten(mara: Client) -> None:
    ControlPlane.objects.create(id=1, swept_at=instant())

    def asked() -> dict[str, int]:
        node = Node.objects.order_by("display_name")[0]
        counts = {}
        for name, path in {"list": LIST, "node": page_of(node), "home": "/admin/"}.items():
            with CaptureQueriesContext(connection) as queries:
                assert mara.get(path).status_code == 200
            counts[name] = len(queries)
        return counts

    a_fleet(10)
    few = asked()
    Node.objects.all().delete()
    a_fleet(10_000)
    assert asked() == few
    assert max(few.values()) <= 20


@pytest.mark.parametrize(
    ("asked", "named"),
    [("liveness=asleep", "liveness"), ("colour=red", "colour"), ("flag=odd&service=any", "flag"), ("e=1", "page")],
)
def test_a_parameter_that_means_nothing_is_told_and_nothing_is_listed(
    asked: str, named: str, mara: Client, make_node: Callable[..., Node]
) -> None:
    make_node(display_name="server-77")
    address = reverse("admin:nodes_node_changelist")
    assert "server-77" in browsing.words(mara.get(f"{address}?role=&liveness=offline"))
    said = browsing.words(mara.get(f"{address}?{asked}", follow=True))
    assert "Nothing is listed" in said
    assert named in said
    assert "server-77" not in said


def test_a_role_that_nobody_has_lists_nobody(mara: Client, make_node: Callable[..., Node]) -> None:
    make_node(display_name="server-77")
    said = browsing.words(mara.get(reverse("admin:nodes_node_changelist") + "?role=none-such"))
    assert "server-77" not in said
    assert "Nothing is listed" not in said
