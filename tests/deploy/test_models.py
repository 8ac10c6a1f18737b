"""A model arrives on a deployed server: from a mirror under a CA of its own, into a volume that an engine reads."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy import engine
from tests.deploy.engine import docker
from tests.deploy.mirror import PYTHON, Mirror
from tests.deploy.parts import AGENT_FILES, NodeAgent, Stack
from tests.hub import contents
from tests.hub.repositories import Repository
from tests.parts.ports import until

NewAgent = Callable[..., NodeAgent]
MIB = 1024 * 1024
HUB_FILES = (*AGENT_FILES, "docker-compose.node-agent.hub-ca.yml", "docker-compose.node-agent.secret-files.yml")
ROOT = "/data/artifacts/model-registry"
TOKEN = "hf_" + "0123456789abcdefghij"
LOST_ON_THE_WAY = 8 * MIB
"""What is in the buffers of all connections when they are cut."""
READ = """
import hashlib, json, os, sys
said = {"uid": os.getuid(), "files": {}, "closed": []}
for folder, _, files in os.walk(sys.argv[1], onerror=lambda error: said["closed"].append(error.filename)):
    for name in files:
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            said["files"][os.path.relpath(path, sys.argv[1])] = hashlib.file_digest(file, "sha256").hexdigest()
try:
    os.mkdir(os.path.join(sys.argv[1], "mine"))
except OSError as error:
    said["written"] = error.strerror
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    with Mirror(tmp_path_factory.mktemp("mirror")) as made:
        made.hub.token(TOKEN, accepted=["org/gated"])
        yield made


def proven_root(stack: Stack, agent: NodeAgent) -> str:
    """A storage root in the artifact volume, ordered by REST and proven by the agent."""
    body = {"node_id": agent.node_id, "host_path": "/srv/models", "container_path": ROOT, "reserve_bytes": 0}
    until(lambda: stack.node(agent.node_id).get("facts"), "its facts are told", within=60, every=0.5)
    root = str(stack.site.api("POST", "admin/storage-roots", body)["id"])
    look = lambda: stack.site.api("GET", f"admin/storage-roots/{root}")["state"] == "verified"  # noqa: E731
    until(look, "the root is proven", within=60, every=0.5)
    return root


def succeeded(stack: Stack, job: str) -> dict[str, Any]:
    """The job, once it ended, which it must have done well."""

    def ended() -> dict[str, Any] | None:
        found = dict(stack.site.api("GET", f"admin/jobs/{job}"))
        return found if found["finished_at"] else None

    found = until(ended, "the job ends", within=120, every=0.5)
    assert isinstance(found, dict)
    assert found["state"] == "succeeded", found
    return found


def read_by_an_engine(agent: NodeAgent, folder: str) -> dict[str, Any]:
    """What a container of another uid, which mounts the artifact volume read-only, finds in a folder of it."""
    volume = agent.server.volume("node-agent-artifacts")
    told = docker(
        "run", "--rm", "--interactive", "--user", "20001:20001", "--network", "none", "--read-only",
        "--cap-drop", "ALL", "--volume", f"{volume}:/models:ro", PYTHON, "python", "-", folder, stdin=READ,
    )  # fmt: skip
    return dict(json.loads(told))


def digests(repo: Repository) -> dict[str, str]:
    """What must lie in the snapshot, beside its manifest."""
    return {path: contents.sha256(file.content) for path, file in repo.files().items()}


def test_a_mirrors_ca_that_nobody_named_is_told_with_its_variable(mirror: Mirror, new_agent: NewAgent) -> None:
    agent = new_agent()
    mirror.join(agent)
    agent.server.compose("build", "-q")
    _, told, _ = agent.server.tried("run", "--rm", "-T", "node-agent", "doctor")
    (line,) = [line for line in told.splitlines() if mirror.hub.url in line]
    assert line.startswith("warn")
    assert "(unknown ca)" in line
    assert "MODELFORGE_AGENT_HUB_CA_CERT_PATH" in line


def test_a_model_arrives_though_its_agent_goes_down_in_the_middle_and_an_engine_reads_it(
    stack: Stack, mirror: Mirror, new_agent: NewAgent, tmp_path: Path
) -> None:
    repo = mirror.hub.repo("org/gated", contents.model(24 * MIB, shards=2, seed=1), gated="listed")
    size = sum(file.size for file in repo.files().values())
    token = tmp_path / "hf-token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o444)
    agent = new_agent(HUB_FILES, MODELFORGE_AGENT_HUB_CA_CERT_PATH=str(mirror.ca), MODELFORGE_HF_TOKEN_FILE=str(token))
    mirror.join(agent)
    agent.join("takes models")
    found = agent.server.compose("exec", "-T", "node-agent", "modelforge-agent", "doctor")
    assert f"{mirror.hub.url} answers" in found
    (tls,) = [line for line in found.splitlines() if " TLS " in line]
    assert tls.startswith("ok")
    root = proven_root(stack, agent)
    mirror.hub.cdn.bytes_per_second = 0.5 * MIB
    job = str(stack.site.api("POST", "admin/jobs", {"root_id": root, "repo_id": repo.id, "revision": "main"})["id"])
    until(lambda: mirror.hub.sent() > 0.4 * size, "a good part has left the mirror", within=120, every=0.1)
    half_done = read_by_an_engine(agent, "/models/model-registry")
    agent.server.compose("down")
    before = mirror.hub.sent()
    mirror.hub.cdn.bytes_per_second = None
    agent.up()
    told = succeeded(stack, job)

    assert [name for name in half_done["files"] if name != ".modelforge-root"] == []
    assert before < 0.9 * size
    assert mirror.hub.sent() < size + LOST_ON_THE_WAY
    assert (told["commit"], told["progress"]["bytes_done"]) == (repo.sha, size)
    (artifact,) = stack.site.api("GET", f"artifacts?node={agent.node_id}")["results"]
    assert (artifact["state"], artifact["path"]) == ("published", f"{ROOT}/models/{repo.id}/{repo.sha}")
    assert artifact["host_path"] == f"/srv/models/models/{repo.id}/{repo.sha}"

    read = read_by_an_engine(agent, f"/models/model-registry/models/{repo.id}/{repo.sha}")
    assert read["uid"] == 20001
    assert read["closed"] == []
    assert read["files"].pop("manifest.json")
    assert read["files"] == digests(repo)
    assert read["written"] == "Read-only file system"
    assert TOKEN not in agent.log() + stack.server.logs() + json.dumps(engine.inspect(agent.container))
    assert mirror.hub.strangers_saw(TOKEN) == []
