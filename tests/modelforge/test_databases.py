"""The address of a database: every form that works is kept, and of one that does not, no part is shown."""

import traceback
import warnings
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from modelforge.databases import parse
from modelforge.environment import Environment

NAME = "MODELFORGE_DATABASE_URL"
SECRETS = ("topsec", "retpw")


@pytest.mark.parametrize(
    "url",
    [
        '"postgresql://u:topsecretpw@h/x"',
        "'postgresql://u:topsecretpw@h/x'",
        "//u:topsecretpw@h/x",
        "u:topsecretpw@h/x",
        "postgresql:/u:topsecretpw@h/x",
        "postgresql://u:topsec/retpw@h/x",
        "postgresql://u:topsec?retpw@h/x",
        "postgresql://u:12/retpw@h/x",
        "postgresql://u:12?retpw@h/x",
        "postgresql://u:12?retpw=5@h/x",
        "postgresql://u:12/topsec?retpw@h/x",
        "postgresql://u:topsecretpw@h:notaport/x",
        "postgresql://u:topsecretpw@[::1/x",
        "postgresql://u:topsecretpw%00@h/x",
        "mysql://u:topsecretpw@h/x",
        "sqlite://u:topsecretpw@h/x",
    ],
)
def test_no_part_of_a_wrong_address_is_shown(url: str) -> None:
    """Nor by a warning, nor by what led to the fault."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(ImproperlyConfigured, match=f"^{NAME} ") as fault:
            parse(NAME, url)
    assert warned == []
    shown = "".join(traceback.format_exception_only(fault.value))
    assert fault.value.__cause__ is None
    assert fault.value.__suppress_context__ or fault.value.__context__ is None
    assert not [secret for secret in SECRETS if secret in shown]


@pytest.mark.parametrize("url", ['"postgresql://u:p@h/x"', "postgresql://u:p/w@h/x", "postgresql://u:1/w@h/x"])
def test_a_password_that_breaks_the_address_is_told_with_its_remedy(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"percent-encode the password .* no quotation marks"):
        parse(NAME, url)


@pytest.mark.parametrize(
    ("said", "password"),
    [("p%2Fw%3F%40", "p/w?@"), ("p@s:s", "p@s:s"), ("p#s[s", "p#s[s"), ("p w", "p w"), ("'", "'"), ("p+%25", "p+%")],
)
def test_a_password_that_does_not_is_kept(said: str, password: str) -> None:
    found = parse(NAME, f"postgresql://u:{said}@h:5432/x")
    assert (found["USER"], found["PASSWORD"], found["HOST"], found["PORT"], found["NAME"]) == (
        "u",
        password,
        "h",
        5432,
        "x",
    )


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("nonsense", "is no address of a database; say postgresql://.* or sqlite:////FILE"),
        ("mysql://root@localhost/db", "is no address of a database; say postgresql://.* or sqlite:////FILE"),
        ("localhost:5432", "is no address of a database; say postgresql://.* or sqlite:////FILE"),
        ("postgresql://u:p@h:notaport/x", "a port outside 1 to 65535"),
        ("postgresql://u:p@h:99999/x", "a port outside 1 to 65535"),
        ("postgresql://a:1,b:99999/x", "a port outside 1 to 65535"),
        ("postgresql://h/x?port=99999", "a port outside 1 to 65535"),
        ("postgresql://[::1/x", "has a host that can be none"),
        ("postgresql://a:1,b:c/x", "has a host that can be none"),
        ("postgresql://h h/x", "has a host that can be none"),
        ("postgresql://%2Frun%2Fpostgresql/x", r"A socket: postgresql:///NAME\?host=/FOLDER"),
        ("postgresql://127.0.0.1:1/x?bogus=1", "has an option .* that PostgreSQL does not know"),
        ("postgresql://h/x?sslmode", "is not OPTION=VALUE"),
        ("postgresql://h/x?sslmode=verify", "say one of allow, disable, .*verify-full"),
        ("postgresql://h/x?connect_timeout=10s", "is no number; connect_timeout"),
        ("postgresql://127.0.0.1", "names no database"),
        (f"postgresql://h/{'x' * 64}", "more than 63 characters"),
        ("sqlite://modelforge.sqlite3", "say sqlite:////FILE with four slashes"),
        ("sqlite:modelforge.sqlite3", "is no address of a database"),
    ],
)
def test_an_address_of_no_database_is_told_with_the_remedy(url: str, told: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^{NAME} .*{told}"):
        parse(NAME, url)


@pytest.mark.parametrize(
    ("url", "host", "port", "name"),
    [
        ("postgresql://db:5432/modelforge", "db", 5432, "modelforge"),
        ("postgres://db/modelforge", "db", "", "modelforge"),
        ("PostgreSQL://u@db/modelforge", "db", "", "modelforge"),
        ("postgresql://u:p@[::1]:65535/x", "::1", 65535, "x"),
        ("postgresql://u:p@a:1,b:2/x?target_session_attrs=read-write", "a,b", "1,2", "x"),
        ("postgresql:////run/postgresql/x", "/run/postgresql", "", "x"),
        ("postgresql:///x", "", "", "x"),
        ("postgresql:///?service=modelforge", "", "", ""),
        (f"postgresql://h/{'x' * 63}", "h", "", "x" * 63),
        ("postgresql://h/x%40y", "h", "", "x@y"),
    ],
)
def test_every_form_of_postgresql_is_kept(url: str, host: str, port: int | str, name: str) -> None:
    found = parse(NAME, url)
    assert found["ENGINE"] == "django.db.backends.postgresql"
    assert (found["HOST"], found["PORT"], found["NAME"]) == (host, port, name)


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("host=/run/postgresql", {"host": "/run/postgresql"}),
        ("sslmode=verify-full&sslrootcert=/ca.pem", {"sslmode": "verify-full", "sslrootcert": "/ca.pem"}),
        ("user=u@server&password=p@w&port=5433", {"user": "u@server", "password": "p@w", "port": 5433}),
        ("isolation_level=2&connect_timeout=9", {"isolation_level": 2, "connect_timeout": 9}),
        ("options=-c%20work_mem%3D8MB", {"options": "-c work_mem=8MB"}),
    ],
)
def test_an_option_of_postgresql_is_kept(query: str, options: dict[str, object]) -> None:
    assert parse(NAME, f"postgresql:///x?{query}")["OPTIONS"] == options


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("sqlite:////var/lib/x.sqlite3", "/var/lib/x.sqlite3"),
        ("sqlite:///x.sqlite3", "x.sqlite3"),
        ("sqlite://", ":memory:"),
        ("sqlite://:memory:", ":memory:"),
        ("sqlite:///:memory:", ":memory:"),
    ],
)
def test_every_form_of_sqlite_is_kept(url: str, file: str) -> None:
    found = parse(NAME, url)
    assert (found["ENGINE"], found["NAME"]) == ("django.db.backends.sqlite3", file)


def test_postgresql_keeps_what_its_address_asks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "postgresql://u:p@db:5432/modelforge?sslmode=verify-full")
    monkeypatch.delenv(f"{NAME}_FILE", raising=False)
    found = Environment(tmp_path).database(NAME, "")
    assert found["OPTIONS"] == {"connect_timeout": 5, "sslmode": "verify-full"}
    assert (found["CONN_MAX_AGE"], found["CONN_HEALTH_CHECKS"]) == (None, True)
