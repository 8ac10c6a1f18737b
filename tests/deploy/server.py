"""A server that somebody cloned the repository to: its folder, its .env, and the documentation's Compose commands."""

import json
import os
import shutil
import subprocess
import uuid
from pathlib import Path
from typing import Any, ClassVar

from tests.deploy import engine
from tests.deploy.engine import docker, run

ROOT = Path(__file__).parents[2]
CLONED = (
    ".dockerignore", "agent", "artifacts", "compose", "enrollment", "manage.py", "modelforge", "nodes",
    "requirements.txt", "templates",
)  # fmt: skip
TAG = f"deploy-test-{uuid.uuid4().hex[:8]}"
"""Of this run's images: whoever else tests on the same engine has others."""
BUILD_WITHIN = 600.0


def clone(folder: Path) -> Path:
    """The repository's files, less what git would not bring."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in CLONED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc", ".env"))
        else:
            shutil.copy2(source, folder / name)
    return folder


class Server:
    """One Compose project in a clone of its own; ``variables`` is its .env."""

    projects: ClassVar[list[str]] = []
    """All that were made, for their images outlive them."""

    def __init__(self, folder: Path, files: tuple[str, ...], **variables: str) -> None:
        self.folder = clone(folder) / "compose"
        self.files = files
        self.project = f"modelforge-test-{uuid.uuid4().hex[:8]}"
        self.projects.append(self.project)
        self.variables = {"COMPOSE_PROJECT_NAME": self.project, "MODELFORGE_TAG": TAG, **variables}
        self.write()

    def write(self, **changes: str | None) -> None:
        """The .env, with changes; None takes a line away."""
        self.variables |= {name: text for name, text in changes.items() if text is not None}
        for name in [name for name, text in changes.items() if text is None]:
            self.variables.pop(name, None)
        text = "".join(f"{name}={text}\n" for name, text in self.variables.items())
        (self.folder / ".env").write_text(text)

    def compose(self, *arguments: str, stdin: str = "", within: float = BUILD_WITHIN, check: bool = True) -> str:
        """``docker compose`` with this server's files; what it printed."""
        return self.tried(*arguments, stdin=stdin, within=within, check=check)[1]

    def tried(
        self, *arguments: str, stdin: str = "", within: float = BUILD_WITHIN, check: bool = False
    ) -> tuple[int, str, str]:
        """The same for what may fail: exit code, standard output, standard error."""
        files = [part for name in self.files for part in ("-f", name)]
        done = run(["docker", "compose", *files, *arguments], stdin=stdin, cwd=self.folder, within=within, check=check)
        return done.returncode, done.stdout.strip(), done.stderr.strip()

    def binary(self, *arguments: str, into: Path | None = None, out_of: Path | None = None) -> None:
        """``docker compose`` with a file as its standard output or input."""
        files = [part for name in self.files for part in ("-f", name)]
        with (out_of or Path(os.devnull)).open("rb") as given, (into or Path(os.devnull)).open("wb") as taken:
            subprocess.run(
                ["docker", "compose", *files, *arguments],
                cwd=self.folder,
                env=engine.environment(),
                stdin=given,
                stdout=taken,
                timeout=BUILD_WITHIN,
                check=True,
            )

    def containers(self, *services: str, everything: bool = False) -> list[str]:
        """The ids of a service's containers, in the order of their numbers; with ``everything`` the ended ones too."""
        arguments = ["ps", "--quiet", "--no-trunc", *(["--all"] if everything else []), *services]
        return self.compose(*arguments).split()

    def state(self, service: str) -> dict[str, Any]:
        """What the engine says of the one container of a service, running or not."""
        (container,) = self.containers(service, everything=True)
        return engine.inspect(container)

    def logs(self, *services: str) -> str:
        """All that they said since they were made."""
        return self.compose("logs", "--no-color", "--no-log-prefix", *services)

    def remove(self) -> None:
        """The whole project, volumes too."""
        self.compose("down", "--volumes", "--remove-orphans", "--timeout", "5", within=120, check=False)

    def volume(self, name: str) -> str:
        """The engine's name of a volume of this project."""
        return f"{self.project}_{name}"


def remove_images() -> None:
    """All that were built, the untagged too; the engine's cache of build steps stays."""
    for project in Server.projects:
        built = docker("images", "--quiet", "--filter", f"label=com.docker.compose.project={project}").split()
        if built:
            docker("image", "rm", "--force", *built, check=False)


def image_labels(name: str) -> dict[str, str]:
    """The labels of an image."""
    return dict(json.loads(docker("image", "inspect", f"{name}:{TAG}", "--format", "{{json .Config.Labels}}")))
