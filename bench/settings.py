"""The control plane's settings with the URL of the empty view added."""

from modelforge.settings import *  # noqa: F403

ROOT_URLCONF = "bench.urls"
