"""``python -m agent COMMAND``: starts what was asked for, and loads no more than that needs."""

import importlib
import os
import signal
import sys
import warnings

ALONE = {"run": "agent.daemon", "health": "agent.health"}
"""Commands that take no arguments: one lives for months, the other is asked every half minute by every container.
Neither shall carry a command line's parser (1.5 MiB)."""

ENDINGS = (signal.SIGTERM, signal.SIGINT)
"""Signals that the daemon waits for, and holds as well: here from the first moment, before it is loaded."""

EXIT_NOT_READ = 141
"""What a shell says of a program that SIGPIPE ended."""

NEVER_USED = ("charset_normalizer", "chardet")
"""With these, requests guesses the encoding of texts that do not name it: 3 MiB resident for months. Every answer that
an agent reads is UTF-8 JSON; requests does without them, and would only warn."""


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    for name in NEVER_USED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # the import system's word for "not to be had"
    warnings.filterwarnings("ignore", message="Unable to find acceptable character detection dependency")
    arguments = sys.argv[1:] if argv is None else argv
    if arguments == ["run"]:  # loading takes a moment, and an end that is asked for in it must read as one
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    if len(arguments) == 1 and arguments[0] in ALONE:
        return int(importlib.import_module(ALONE[arguments[0]]).main())
    return int(importlib.import_module("agent.command_line").main(arguments))


def console() -> None:
    """What the ``modelforge-agent`` script calls."""
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read has seen enough, as ``head`` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left must not complain at the end
        code = EXIT_NOT_READ
    sys.exit(code)


if __name__ == "__main__":
    console()
