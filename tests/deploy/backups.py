"""A backup of the control plane, and its restoration, by the documentation's commands."""

from pathlib import Path

from tests.deploy.parts import Stack


def dump(stack: Stack, into: Path) -> None:
    """The database."""
    stack.server.binary("exec", "-T", "postgres", "pg_dump", "-U", "modelforge", "-Fc", "modelforge", into=into)


def dump_ca(stack: Stack, into: Path) -> None:
    """The proxy's CA."""
    stack.server.binary("cp", "proxy:/data/caddy", "-", into=into)


def restore(stack: Stack, out_of: Path) -> None:
    """The database as it was, up to the point where the control plane may come up again."""
    stack.server.compose("stop", "web", "worker", "beat")
    stack.server.compose("exec", "-T", "postgres", "dropdb", "-U", "modelforge", "--force", "modelforge")
    stack.server.compose("exec", "-T", "postgres", "createdb", "-U", "modelforge", "modelforge")
    stack.server.binary(
        "exec", "-T", "postgres", "pg_restore", "-U", "modelforge", "-d", "modelforge", "--exit-on-error",
        out_of=out_of,
    )  # fmt: skip


def restore_ca(stack: Stack, out_of: Path) -> None:
    """The CA, on a server where nothing ran yet."""
    stack.server.compose("create", "proxy")
    stack.server.binary("cp", "-", "proxy:/data", out_of=out_of)
