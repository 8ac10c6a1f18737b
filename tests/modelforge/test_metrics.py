"""What Prometheus is told: the fleet as it stands, nothing that was not measured, and only to whom it concerns."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import DjangoAssertNumQueries, Settings

from artifacts.models import Job
from enrollment import keys
from enrollment.models import ApiKey
from nodes.callers import Caller
from nodes.liveness import Liveness
from nodes.models import Accelerator, ControlPlane, Heartbeat, Node, TelemetrySample
from tests.artifacts.showing import a_job, a_root, an_artifact
from tests.parts.start import OPERATOR_API_KEY

Sample = tuple[str, tuple[tuple[str, str], ...]]


@pytest.fixture
def scrape(settings: Settings, db: None) -> Callable[[], dict[Sample, float]]:
    """All samples by name and labels."""

    def read() -> dict[Sample, float]:
        answer = Client(headers={"Authorization": f"Bearer {OPERATOR_API_KEY}"}).get("/metrics")
        assert answer.status_code == 200
        assert answer["Content-Type"].startswith("text/plain")
        families = text_string_to_metric_families(answer.content.decode())
        return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}

    return read


def nodes(liveness: str, enabled: str = "true") -> Sample:
    return "modelforge_nodes", (("enabled", enabled), ("liveness", liveness))


def heard(node: Node, stale_in: float, liveness: Liveness = Liveness.ONLINE) -> None:
    now = datetime.now(UTC)
    stale = now + timedelta(seconds=stale_in)
    Heartbeat.objects.filter(node=node).update(
        liveness=liveness, last_heard_at=now, stale_at=stale, offline_at=stale + timedelta(seconds=45)
    )


def test_nodes_are_counted_by_how_they_stand_now(
    make_node: Callable[..., Node], scrape: Callable[[], dict[Sample, float]]
) -> None:
    """Liveness is right between two sweeps, too (field case 81)."""
    heard(make_node(), stale_in=30)
    heard(make_node(), stale_in=-1)  # overdue, not swept yet
    make_node(enabled=False)
    make_node(retired_at=datetime.now(UTC))
    told = scrape()
    assert told[nodes("online")] == 1
    assert told[nodes("stale")] == 1
    assert told[nodes("offline")] == 0
    assert told[nodes("offline", "false")] == 1


def reading(value: float | None) -> dict[str, Any]:
    return {"value": value} if value is not None else {"reason": "unsupported"}


def sample(node: Node, devices: Sequence[dict[str, Any]], ago: timedelta = timedelta()) -> None:
    TelemetrySample.objects.create(node=node, at=datetime.now(UTC) - ago, data={"accelerators": list(devices)})


def device(**measured: float | None) -> dict[str, Any]:
    fields = ("utilization_percent", "memory_used_bytes", "memory_free_bytes", "temperature_celsius", "power_watts")
    return {"key": "GPU-1", **{field: reading(measured.get(field)) for field in fields}}


def test_what_was_measured_is_told_in_base_units_and_a_reason_is_no_number(
    make_node: Callable[..., Node], scrape: Callable[[], dict[Sample, float]]
) -> None:
    """Field case 44."""
    node = make_node(display_name="server01")
    sample(node, [device(utilization_percent=87.5, memory_used_bytes=1024)])
    told = scrape()
    labels = (("accelerator", "GPU-1"), ("node", "server01"), ("node_id", str(node.pk)))
    assert told["modelforge_accelerator_utilization_ratio", labels] == 0.875
    assert told["modelforge_accelerator_memory_used_bytes", labels] == 1024
    assert ("modelforge_accelerator_power_watts", labels) not in told


def test_an_old_measurement_is_not_told_as_the_present_one(
    make_node: Callable[..., Node], scrape: Callable[[], dict[Sample, float]]
) -> None:
    sample(make_node(), [device(power_watts=300)], ago=timedelta(hours=1))
    assert not [name for name, _ in scrape() if name == "modelforge_accelerator_power_watts"]


def test_missing_accelerators_are_counted_apart(
    make_node: Callable[..., Node], scrape: Callable[[], dict[Sample, float]], now: datetime
) -> None:
    node = make_node()
    for key, missing in (("GPU-1", None), ("GPU-2", None), ("GPU-3", now)):
        Accelerator.objects.create(
            node=node, key=key, identity="uuid", kind="gpu", index=0, memory_model="dedicated", facts={},
            first_seen_at=now, last_seen_at=now, missing_since=missing,
        )  # fmt: skip
    told = scrape()
    assert told["modelforge_accelerators", (("kind", "gpu"), ("missing", "false"))] == 2
    assert told["modelforge_accelerators", (("kind", "gpu"), ("missing", "true"))] == 1


def test_the_age_of_the_last_sweep_is_told(scrape: Callable[[], dict[Sample, float]]) -> None:
    assert ("modelforge_last_sweep_age_seconds", ()) not in scrape()
    ControlPlane.objects.update_or_create(id=1, defaults={"swept_at": datetime.now(UTC) - timedelta(seconds=90)})
    assert 90 <= scrape()["modelforge_last_sweep_age_seconds", ()] < 120


def test_a_scrape_costs_a_constant_number_of_queries(
    make_node: Callable[..., Node],
    scrape: Callable[[], dict[Sample, float]],
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    now = datetime.now(UTC)
    for _ in range(20):
        root = a_root(make_node(), now)
        sample(root.node, [device(power_watts=300)])
        an_artifact(root, now)
    with django_assert_max_num_queries(11):
        scrape()


@pytest.mark.django_db
def test_a_stranger_is_told_nothing(stranger: Client) -> None:
    assert stranger.get("/metrics").status_code == 401
    assert Client(headers={"Authorization": "Bearer mfk_wrong"}).get("/metrics").status_code == 401


@pytest.mark.django_db
def test_an_auditors_key_scrapes(operator: Caller) -> None:
    _, secret = keys.create("prometheus", ApiKey.Role.AUDITOR, None, by=operator, now=datetime.now(UTC))
    assert Client(headers={"Authorization": f"Bearer {secret}"}).get("/metrics").status_code == 200


@pytest.mark.django_db
def test_metrics_may_be_opened_to_all(settings: Settings, stranger: Client) -> None:
    settings.METRICS_PUBLIC = True
    assert stranger.get("/metrics").status_code == 200


def test_jobs_and_artifacts_are_counted_by_state(
    make_node: Callable[..., Node], scrape: Callable[[], dict[Sample, float]]
) -> None:
    now = datetime.now(UTC)
    root = a_root(make_node(), now)
    a_job(root, now, state="running")
    a_job(root, now, state="failed", repo_id="org/failed")
    an_artifact(root, now, bytes=7)
    an_artifact(root, now, repo_id="org/broken", bytes=5, state="damaged")
    an_artifact(root, now, repo_id="org/gone", state="removed", removed_at=now)
    told = scrape()
    jobs = {state: told["modelforge_jobs", (("state", state),)] for state in Job.State.values}
    assert jobs == {"queued": 0, "running": 1, "succeeded": 0, "failed": 1, "cancelled": 0}
    assert told["modelforge_artifacts", (("state", "published"),)] == 1
    assert told["modelforge_artifact_bytes", (("state", "published"),)] == 7
    assert told["modelforge_artifact_bytes", (("state", "damaged"),)] == 5
    assert ("modelforge_artifacts", (("state", "removed"),)) not in told


def test_a_root_tells_what_its_agent_proved_and_how_long_ago(
    make_node: Callable[..., Node], scrape: Callable[[], dict[Sample, float]]
) -> None:
    now = datetime.now(UTC)
    node = make_node(display_name="server01")
    known = a_root(node, now, state="unverified", fault="missing", proven_at=now - timedelta(hours=1))
    a_root(node, now, "new", state="pending", proven_at=None, free_bytes=None, total_bytes=None)
    a_root(node, now, "gone", state="retired", retired_at=now)
    told = scrape()
    labels = (
        ("node", "server01"),
        ("node_id", str(node.pk)),
        ("path", "/data/artifacts/models"),
        ("root_id", str(known.pk)),
    )
    assert told["modelforge_storage_root_verified", labels] == 0
    assert told["modelforge_storage_root_free_bytes", labels] == 2**40
    assert 3600 <= told["modelforge_storage_root_proof_age_seconds", labels] < 3630
    measured = [dict(found)["path"] for name, found in told if name == "modelforge_storage_root_free_bytes"]
    assert measured == ["/data/artifacts/models"]
    watched = {dict(found)["path"] for name, found in told if name == "modelforge_storage_root_verified"}
    assert watched == {"/data/artifacts/models", "/data/artifacts/new"}
