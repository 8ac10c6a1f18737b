"""The commands that people use to let a node in: ``enroll`` once and fail fast, and ``credential set``."""

import argparse
import os
import socket
import sys
from pathlib import Path
from uuid import uuid4

from agent import config, logs
from agent.client import Client
from agent.config import Config, ConfigError
from agent.identity import Identity, NotInvited
from agent.record import StateError, is_credential
from agent.state import State
from agent.trouble import Faltering, NotStored, Refused, Trouble
from agent.variables import Secret

EXIT_OK, EXIT_UNREACHABLE, EXIT_CANNOT_WRITE, EXIT_TRY_AGAIN, EXIT_REFUSED, EXIT_CONFIG = 0, 69, 74, 75, 77, 78
_MAX_INPUT = 64 * 1024


def main(arguments: argparse.Namespace) -> int:
    """``enroll`` or ``credential set``; says on standard error what went wrong and what to do."""
    try:
        if arguments.command == "credential set":
            return replace_credential(config.load(os.environ, need_control_plane=False))
        return enroll(config.load(os.environ), arguments.token_file)
    except ConfigError as error:
        for fault in error.faults:
            _complain(fault)
        return EXIT_CONFIG
    except NotInvited as error:
        _complain(str(error))
        return EXIT_CONFIG
    except StateError as error:
        _complain(str(error))
        return error.exit_code


def enroll(settings: Config, token_file: str | None) -> int:
    """Join with the token of the file, else of the environment; a stored credential wins over the environment's."""
    token = settings.token
    if token_file is not None:
        token = _read_token(token_file)
    state = State(settings.state_dir)
    state.prepare(allow_ephemeral=settings.allow_ephemeral_state)
    if state.known_id() is None:
        state.lock()  # an id is about to be minted; a running agent that has one takes a new credential by itself
    if token_file is None and state.credential.recover() is not None:
        _say(f"Already enrolled as {state.node_id()}; nothing was done. To join again, pass --token-file.")
        return EXIT_OK
    identity = Identity(state, token)
    client = Client(settings.link)
    hostname = (settings.hostname or socket.gethostname() or "unnamed")[:255]
    try:
        answer = identity.enroll(client, boot_id=uuid4(), hostname=hostname, display_name=settings.display_name)
    except Trouble as trouble:
        _complain(f"{trouble}" + (f" [request {trouble.request_id}]" if trouble.request_id else ""))
        return exit_code_of(trouble)
    finally:
        client.close()
        state.close()
    name = logs.told(answer.display_name, 255)
    _say(f"Enrolled as {answer.node_id} ({name}). Start the agent with: python -m agent run")
    return EXIT_OK


def replace_credential(settings: Config) -> int:
    """Store the credential that standard input holds, as a rotation gave it; a running agent takes it by itself."""
    credential = sys.stdin.read(_MAX_INPUT).strip()
    if not is_credential(credential):
        _complain("Standard input holds no node credential: one starts with mfn_. Copy it whole. Nothing was changed.")
        return EXIT_CONFIG
    state = State(settings.state_dir)
    state.prepare(allow_ephemeral=settings.allow_ephemeral_state)
    if state.node_id() is None:
        _complain(f"{settings.state_dir} holds no node id: this server never joined. Run enroll first.")
        return EXIT_CONFIG
    try:
        state.credential.keep(credential)
    except OSError as error:
        _complain(f"{state.credential.path} cannot be written: {error.strerror}")
        return EXIT_CANNOT_WRITE
    _say("Stored. A running agent uses it from its next beat on.")
    return EXIT_OK


def exit_code_of(trouble: Trouble) -> int:
    """The sysexits code that tells a script what kind of trouble it was."""
    if isinstance(trouble, Refused):
        return EXIT_REFUSED if trouble.parks else EXIT_TRY_AGAIN
    if isinstance(trouble, NotStored):
        return EXIT_CANNOT_WRITE
    return EXIT_TRY_AGAIN if isinstance(trouble, Faltering) else EXIT_UNREACHABLE


def _read_token(name: str) -> Secret:
    try:
        if name == "-":
            return Secret(sys.stdin.read(_MAX_INPUT).strip(), "standard input")
        with Path(name).open(encoding="utf-8") as file:
            return Secret(file.read(_MAX_INPUT).strip(), name)
    except (OSError, UnicodeDecodeError) as error:
        raise NotInvited(f"The token file {name} cannot be read: {error}") from error


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


def _complain(text: str) -> None:
    sys.stderr.write(text + "\n")
