"""The login page with its limit: failed logins are counted by address, whatever names they try.

django-axes locks one name for one address; here the address itself waits, and is told so before a password is hashed.
"""

from datetime import UTC, datetime

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from enrollment import attempts
from nodes.callers import address_of


def login(request: HttpRequest) -> HttpResponse:
    """The admin's login; 429 with ``Retry-After`` for an address that failed more often than MODELFORGE_LOGIN_RATE."""
    if request.method != "POST":
        return admin.site.login(request)
    now, address = datetime.now(UTC), address_of(request)
    wait = attempts.wait("login", address=address, now=now)
    if wait is not None:
        response = render(request, "429.html", {"seconds": wait.seconds + 1}, status=429)
        response["Retry-After"] = str(wait.seconds + 1)
        return response
    response = admin.site.login(request)
    if response.status_code != 302:  # only the right password leads on
        attempts.count("login", address=address, now=now)
    return response
