"""The agent's command line: which commands there are, what they print, and the exit codes that scripts rely on."""

import argparse
import importlib
import sys
from typing import NoReturn

EXIT_CODES = """\
exit codes:
  0  fine                       74  the state folder cannot be written
  1  not healthy, or crashed    75  try again later, or another agent runs on this state
 64  wrong usage                77  the control plane refused the token or credential
 69  no control plane there     78  the configuration or the state needs a person

Secrets are never taken from the command line: they come from the environment, from files, or from standard input.
Configuration: MODELFORGE_AGENT_* variables, see docs/operating.md."""

EXIT_USAGE = 64


class Parser(argparse.ArgumentParser):
    """argparse with the exit code that sysexits gives to wrong usage."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(EXIT_USAGE, f"{self.prog}: {message}\n")


def parser() -> argparse.ArgumentParser:
    """All commands; ``module`` is where a command's ``main`` lives, imported when it runs."""
    top = Parser(
        prog="modelforge-agent",
        description="The ModelForge node agent: tells a control plane about this server, over outbound HTTPS only.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)

    def command(name: str, module: str, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        made.set_defaults(module=module, command=name)
        return made

    command("run", "daemon", "join where need be, then beat until SIGTERM; refusals park it, they do not end it")
    enroll = command("enroll", "joining", "join once with an enrollment token and end; fails fast")
    enroll.add_argument(
        "--token-file", metavar="PATH", help='read the token from this file ("-": standard input) and join even where '
        "a credential is stored already"
    )  # fmt: skip
    status = command("status", "status", "show this node's id, credential state and health, without asking anyone")
    status.add_argument("--json", action="store_true", help="as one JSON object")
    command("health", "health", "one line and an exit code, for a container's HEALTHCHECK")
    command(
        "doctor",
        "doctor",
        "check address, DNS, TLS, clock, proxy, volumes, storage roots, NVML, state and Hub, and say what to do",
    )
    facts = command("facts", "status", "look at this server and print what would be told about it")
    facts.add_argument("--json", action="store_true", help="as one JSON object (the default is the same, indented)")
    credential = command("credential", "joining", "handle the node's credential")
    actions = credential.add_subparsers(title="actions", metavar="ACTION", required=True, parser_class=Parser)
    replace = actions.add_parser(
        "set",
        help="read a credential from standard input and store it; a running agent takes it without a restart",
    )
    replace.set_defaults(command="credential set")
    command("version", "status", "print the agent's version and protocol")
    return top


def main(argv: list[str]) -> int:
    """Run one command; returns its exit code."""
    arguments = parser().parse_args(argv)
    return int(importlib.import_module(f"agent.{arguments.module}").main(arguments))
