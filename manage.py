#!/usr/bin/env python
"""Django's command line for the control plane."""

import sys

from django.core.management import execute_from_command_line

from modelforge.configured import settings_or_end

if __name__ == "__main__":
    settings_or_end()
    execute_from_command_line(sys.argv)
