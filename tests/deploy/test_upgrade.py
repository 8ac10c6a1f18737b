"""A release and the one before it run side by side on one schema; going forth and back costs no beat and no act."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from tests.deploy import engine
from tests.deploy.parts import NodeAgent, Stack
from tests.deploy.server import TAG
from tests.deploy.watching import Watch
from tests.parts.ports import until

NewAgent = Callable[..., NodeAgent]
NEXT = f"{TAG}-next"
NO_LONGER_THAN = 10.0
"""Seconds without an act while releases change; on a machine that builds an image meanwhile."""
VERSION = '__version__ = "0.1.0"'
# What a release may do to the schema: add a column with a default of the database's.
MIGRATION = """
from django.db import migrations

class Migration(migrations.Migration):
    dependencies = [("nodes", "{last}")]
    operations = [migrations.RunSQL("ALTER TABLE nodes_node ADD COLUMN next_release text NOT NULL DEFAULT 'x'",
                                    "ALTER TABLE nodes_node DROP COLUMN next_release")]
"""


def release(root: Path) -> None:
    """Make a clone of the repository the next release."""
    folder = root / "nodes/migrations"
    last = max(path.stem for path in folder.glob("0*.py"))
    (folder / "9999_next_release.py").write_text(MIGRATION.format(last=last))
    init = root / "agent/__init__.py"
    assert VERSION in init.read_text()
    init.write_text(init.read_text().replace(VERSION, '__version__ = "99.0.0"'))


def images(stack: Stack, service: str) -> list[str]:
    """The tags that a service's containers run."""
    found = [engine.inspect(container)["Config"]["Image"] for container in stack.server.containers(service)]
    return sorted(image.rpartition(":")[2] for image in found)


def side_by_side(stack: Stack) -> list[str]:
    """One web server of the release that ran, which is told, and one of the release that .env names."""
    old = stack.server.containers("web")
    stack.server.compose("up", "-d", "--no-deps", "--no-recreate", "--wait", "--scale", "web=2", "web")
    return old


def replace_all(stack: Stack, old: list[str]) -> None:
    """All of the release that .env names."""
    engine.docker("stop", *old)
    engine.docker("rm", *old)
    stack.server.compose("up", "-d", "--no-deps", "--wait", "web", "worker", "beat")


def beat_is_heard(stack: Stack, agent: NodeAgent) -> None:
    """One more beat from now on."""
    before = stack.node(agent.node_id)["last_heard_at"]
    until(lambda: stack.node(agent.node_id)["last_heard_at"] > before, "a beat is heard", every=0.2)


def test_the_next_release_comes_beside_this_one_and_goes_again(
    stack: Stack, agent: NodeAgent, new_agent: NewAgent
) -> None:
    until(stack.is_ready, "the stack is ready", within=60, every=0.2)
    release(stack.server.folder.parent)
    early = new_agent()
    release(early.server.folder.parent)
    early.server.write(MODELFORGE_TAG=NEXT)
    try:
        with Watch(stack) as watch:
            stack.server.write(MODELFORGE_TAG=NEXT)
            stack.server.compose("build", "-q")
            assert images(stack, "web") == [TAG]
            stack.server.compose("run", "--rm", "-T", "--no-deps", "migrate")
            beat_is_heard(stack, agent)  # the old web on the new schema
            old = side_by_side(stack)
            assert images(stack, "web") == [TAG, NEXT]
            early.join("of the next release")  # the new agent, the old one, and both web servers
            assert stack.node(early.node_id)["agent_version"] == "99.0.0"
            for _ in range(3):
                beat_is_heard(stack, agent)
                beat_is_heard(stack, early)
            replace_all(stack, old)
            assert images(stack, "web") == images(stack, "worker") == images(stack, "beat") == [NEXT]
            beat_is_heard(stack, agent)
        assert watch.complaints() == []
        assert watch.pause() < NO_LONGER_THAN
        assert watch.kept() == set(watch.promised)
    finally:
        stack.server.write(MODELFORGE_TAG=TAG)
        with Watch(stack) as watch:
            replace_all(stack, side_by_side(stack))
    assert images(stack, "web") == images(stack, "worker") == images(stack, "beat") == [TAG]
    until(stack.is_ready, "the release before is ready on the new schema", within=60, every=0.2)
    assert watch.complaints() == []
    assert watch.pause() < NO_LONGER_THAN
    beat_is_heard(stack, agent)
    beat_is_heard(stack, early)
    agents_own = early.node_id
    early.server.write(MODELFORGE_TAG=TAG)
    early.server.compose("up", "-d")
    assert early.wait_online()["agent_version"] == "0.1.0"
    assert early.node_id == agents_own
    for name in ("modelforge-control-plane", "modelforge-agent"):
        engine.docker("image", "rm", "--force", f"{name}:{NEXT}")


def test_the_one_command_of_an_upgrade_leaves_database_redis_and_proxy_alone(stack: Stack, agent: NodeAgent) -> None:
    until(stack.is_ready, "the stack is ready", within=60, every=0.2)
    before = {service: stack.server.containers(service) for service in ("postgres", "redis", "proxy", "web")}
    release_note = stack.server.folder.parent / "modelforge/pages.py"
    release_note.write_text(release_note.read_text() + "\n# another release\n")
    began = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    stack.server.compose("up", "-d", "--build", "--wait")
    after = {service: stack.server.containers(service) for service in before}
    assert [service for service in before if before[service] != after[service]] == ["web"]
    beat_is_heard(stack, agent)
    assert stack.site.events(since=began, type="node.offline", node=agent.node_id) == []
