"""The WSGI application that the web server loads."""

import os
from datetime import UTC, datetime

from django.core.wsgi import get_wsgi_application

from modelforge.bodies import whole

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "modelforge.settings")

application = whole(get_wsgi_application())

from modelforge.waking import wake  # noqa: E402 - needs the apps that the line above loads

wake(datetime.now(UTC))
