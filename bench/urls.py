"""The control plane's URLs and, beside them, the empty view that a beat is measured against."""

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import path

from modelforge import urls


def select_one(_: HttpRequest) -> HttpResponse:
    """What any Django view costs that asks its database one question."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    return HttpResponse(b"ok", content_type="text/plain")


urlpatterns = [path("bench/select-one", select_one), *urls.urlpatterns]
handler400, handler403, handler404, handler500 = urls.handler400, urls.handler403, urls.handler404, urls.handler500
