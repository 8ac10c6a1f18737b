"""More of everything: three web servers share the work, and of two workers and two beats nothing comes twice."""

from datetime import UTC, datetime

from tests.deploy import engine
from tests.deploy.parts import NodeAgent, Stack
from tests.deploy.watching import Watch
from tests.parts.ports import until

MORE = ("--scale", "web=3", "--scale", "worker=2", "--scale", "beat=2")
ONCE = ("node.stale", "node.offline", "node.returned")


def has_served(web: str) -> bool:
    """Whether this web server answered a request for a token."""
    return "/admin/node-enrollments" in engine.run(["docker", "logs", web]).stderr


def test_more_servers_share_the_work_and_nothing_happens_twice(stack: Stack, agent: NodeAgent) -> None:
    agent.wait_online()
    until(stack.is_ready, "the stack is ready", within=60, every=0.2)
    node = agent.node_id
    began = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    with Watch(stack) as watch:
        stack.server.compose("up", "-d", "--wait", *MORE)
        webs = stack.server.containers("web")
        assert [len(stack.server.containers(service)) for service in ("web", "worker", "beat")] == [3, 2, 2]
        until(lambda: all(map(has_served, webs)), "each web server has had its share", within=30, every=0.5)
        engine.docker("pause", agent.container)
        try:
            until(lambda: stack.node(node)["liveness"] == "offline", "its node is offline", within=60, every=0.2)
        finally:
            engine.docker("unpause", agent.container)
        agent.wait_online()
        stack.server.compose("up", "-d", "--wait")
    assert [len(stack.server.containers(service)) for service in ("web", "worker", "beat")] == [1, 1, 1]
    told = [event["type"] for event in stack.site.events(since=began, node=node)]
    assert sorted(type for type in told if type in ONCE) == sorted(ONCE)
    assert watch.complaints() == []
    assert watch.kept() == set(watch.promised)
    stack.manage("audit_verify")
