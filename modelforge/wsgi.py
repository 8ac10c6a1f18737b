"""The WSGI application that the web server loads."""

from datetime import UTC, datetime

from django.core.wsgi import get_wsgi_application

from modelforge.bodies import whole
from modelforge.configured import settings_or_end

settings_or_end()
application = whole(get_wsgi_application())

from modelforge.waking import wake  # noqa: E402 - needs the apps that the line above loads

wake(datetime.now(UTC))
