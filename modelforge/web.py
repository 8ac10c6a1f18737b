"""The web server: ``python -m modelforge.web``, with granian's own options behind it, such as --host and --port."""

import os
import sys

from modelforge.configured import settings_or_end

COMMAND = [
    *("--interface", "wsgi", "--http", "1", "--no-ws"),
    # More threads than cores: a client that sends or reads slowly holds one of them, and must not hold them all.
    *("--workers", "2", "--blocking-threads", "8", "--respawn-failed-workers", "--workers-kill-timeout", "5"),
    *("--log-level", "warning"),
]
"""What holds where nothing else is said: of an option that is given twice, the last counts."""
APPLICATION = "modelforge.wsgi:application"


def main() -> None:
    """Look at the settings once, rather than in each of its processes; then become the web server."""
    settings_or_end()
    command = [sys.executable, "-m", "granian", *COMMAND, *sys.argv[1:], APPLICATION]
    os.execv(sys.executable, command)  # noqa: S606 - no shell stands between


if __name__ == "__main__":
    main()
