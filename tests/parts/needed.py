"""Says what the tests need of this machine beyond Python, before they start."""

import shutil
import sys

NEEDED = {
    "gcc": "compiles the NVML stand-in; Debian: apt install gcc libc6-dev",
    "chromium": "opens the admin pages; Debian: apt install chromium fonts-dejavu-core",
}


def missing() -> list[str]:
    """A line for each program that is not on the PATH."""
    return [f"{name} is missing: it {why}" for name, why in NEEDED.items() if shutil.which(name) is None]


if __name__ == "__main__":
    sys.exit("\n".join(missing()) or 0)
