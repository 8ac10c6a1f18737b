"""The control plane's variables: each fault is told with its remedy, and secrets may come from files."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from rest_framework.throttling import SimpleRateThrottle

from modelforge import throttles
from modelforge.environment import Environment, folder

NAME = "MODELFORGE_SECRET_KEY"


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    for name in list(os.environ):
        if name.startswith("MODELFORGE_"):
            monkeypatch.delenv(name)
    return Environment(tmp_path / "var")


def test_a_secret_may_come_from_a_file(env: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("x" * 40 + "\n")
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "key"))
    assert env.secret(NAME) == "x" * 40


def test_both_the_variable_and_its_file_is_a_fault(env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "x" * 40)
    monkeypatch.setenv(f"{NAME}_FILE", "/run/secrets/key")
    with pytest.raises(ImproperlyConfigured, match="both set; keep one"):
        env.secret(NAME)


def test_a_file_that_cannot_be_read_stops_the_start(env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{NAME}_FILE", "/run/secrets/nowhere")
    with pytest.raises(ImproperlyConfigured, match=f"{NAME}_FILE names a file that cannot be read"):
        env.secret(NAME)


def test_a_secret_in_the_place_of_its_file_is_not_shown(env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{NAME}_FILE", "hunter2" * 6)
    with pytest.raises(ImproperlyConfigured, match="cannot be read \\(No such file or directory\\)") as fault:
        env.secret(NAME)
    assert "hunter2" not in str(fault.value)


def test_a_file_that_is_no_text_is_told(env: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_bytes(b"\xff" * 40)
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "key"))
    with pytest.raises(ImproperlyConfigured, match=f"{NAME}_FILE names .*it is no text in UTF-8"):
        env.secret(NAME)


def test_a_short_secret_is_refused_without_being_shown(env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "hunter2")
    with pytest.raises(ImproperlyConfigured, match="has 7 characters; give it at least 32") as fault:
        env.secret(NAME)
    assert "hunter2" not in str(fault.value)


def test_a_secret_that_nobody_set_is_made_once_and_kept(env: Environment) -> None:
    made = env.secret(NAME)
    assert len(made) >= 32
    assert env.secret(NAME) == made
    (kept,) = env.var.iterdir()
    assert kept.name == "secret-key"
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("said", ["1.5", "-1", "many", "0", "3601", "٣"])
def test_a_number_out_of_bounds_is_told_with_them(said: str, env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELFORGE_HEARTBEAT_INTERVAL_SECONDS", said)
    with pytest.raises(ImproperlyConfigured, match="say a whole number from 1 to 3600"):
        env.seconds("MODELFORGE_HEARTBEAT_INTERVAL_SECONDS", 15, least=1, most=3600)


def test_a_number_too_long_to_be_read_is_shown_by_its_beginning(
    env: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELFORGE_HSTS_SECONDS", "9" * 5000)
    with pytest.raises(ImproperlyConfigured, match="say a whole number from 0 to 9") as fault:
        env.number("MODELFORGE_HSTS_SECONDS", 0, most=9)
    assert len(str(fault.value)) < 200


@pytest.mark.parametrize(
    "said",
    ["fast", "x", "1/", "/minute", "0/minute", "-5/minute", "1.5/minute", "5/fortnight", "1/month", "5 /minute"],
)
def test_what_is_no_rate_is_told_with_one_that_is(said: str, env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELFORGE_API_RATE", said)
    with pytest.raises(ImproperlyConfigured, match=r"^MODELFORGE_API_RATE is .*second, minute.* such as 1200/minute\."):
        env.rate("MODELFORGE_API_RATE", "1200/minute")


@pytest.mark.parametrize("said", ["1/second", "30/min", "1200/minute", "5/hour", "7/d", "999999999/day"])
def test_a_rate_is_one_for_everybody_who_counts(said: str, env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELFORGE_API_RATE", said)
    kept = env.rate("MODELFORGE_API_RATE", "1200/minute")
    assert kept == said
    assert throttles.rate(kept) == object.__new__(SimpleRateThrottle).parse_rate(kept)


def test_one_of_a_few_words_is_said_in_any_case(env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELFORGE_LOG_FORMAT", "JSON")
    assert env.choice("MODELFORGE_LOG_FORMAT", "auto", ("auto", "json")) == "JSON"
    monkeypatch.setenv("MODELFORGE_LOG_FORMAT", "xml")
    with pytest.raises(ImproperlyConfigured, match="MODELFORGE_LOG_FORMAT is 'xml'; say one of auto, json"):
        env.choice("MODELFORGE_LOG_FORMAT", "auto", ("auto", "json"))


def test_a_duration_is_told_in_seconds(env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELFORGE_HEARTBEAT_INTERVAL_SECONDS", "30")
    name = "MODELFORGE_HEARTBEAT_INTERVAL_SECONDS"
    assert env.seconds(name, 15, least=1, most=3600) == timedelta(seconds=30)


def test_a_flag_is_true_or_false_and_nothing_else(env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELFORGE_DEBUG", "maybe")
    with pytest.raises(ImproperlyConfigured, match="say true or false"):
        env.flag("MODELFORGE_DEBUG", False)


@pytest.mark.parametrize("said", ["X Forwarded For", "X_Forwarded_For", "X-Forwarded-For:"])
def test_a_name_that_no_header_has_is_told(said: str, env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELFORGE_CLIENT_HEADER", said)
    with pytest.raises(ImproperlyConfigured, match="say a header by its name"):
        env.header("MODELFORGE_CLIENT_HEADER", "X-Forwarded-For")
    monkeypatch.setenv("MODELFORGE_CLIENT_HEADER", "Clientaddress")
    assert env.header("MODELFORGE_CLIENT_HEADER", "X-Forwarded-For") == "Clientaddress"


def test_an_unknown_name_is_told_with_the_nearest_known(env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    env.raw("MODELFORGE_PUBLIC_URL")
    monkeypatch.setenv("MODELFORGE_PUBLIC_URI", "https://modelforge.example")
    assert env.unknown() == ["MODELFORGE_PUBLIC_URI (did you mean MODELFORGE_PUBLIC_URL?)"]


@pytest.mark.parametrize(
    "name", ["MODELFORGE_PUBLIC_URL_FILE", "MODELFORGE_AGENT_DISPLAY_NAME", "MODELFORGE_HF_TOKEN", "MODELFORGE_VAR_DIR"]
)
def test_names_of_others_and_of_files_are_not_unknown(
    name: str, env: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    env.raw("MODELFORGE_PUBLIC_URL")
    monkeypatch.setenv(name, "x")
    assert env.unknown() == []


def test_sqlite_takes_its_turn_and_writes_ahead(env: Environment) -> None:
    found = env.database("MODELFORGE_DATABASE_URL", f"sqlite:///{env.var}/deep/modelforge.sqlite3")
    assert found["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "journal_mode=WAL" in found["OPTIONS"]["init_command"]
    assert (env.var / "deep").is_dir()


QUEUE = "MODELFORGE_QUEUE_DIR"
NOBODY = 65534


def test_a_folder_is_made_with_all_above_it(env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(QUEUE, str(env.var / "deep" / "queue"))
    assert env.path(QUEUE, env.var / "queue").is_dir()


@pytest.mark.parametrize("below", ["", "below/it"], ids=["a-file", "below-a-file"])
def test_a_file_where_a_folder_is_wanted_is_told_by_its_variable(
    below: str, env: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(QUEUE, str(tmp_path / "file" / below))
    with pytest.raises(ImproperlyConfigured, match=f"{QUEUE}: .*a file stands there.*let {QUEUE} name another"):
        env.path(QUEUE, env.var / "queue")


@pytest.mark.parametrize(
    "use",
    [
        lambda env: env.path(QUEUE, env.var / "queue"),
        lambda env: env.secret(NAME),
        lambda env: env.database("MODELFORGE_DATABASE_URL", f"sqlite:///{env.var}/modelforge.sqlite3"),
    ],
    ids=["queue", "secret-key", "database"],
)
def test_what_lies_in_the_var_folder_is_told_by_that(use: Callable[[Environment], object], env: Environment) -> None:
    env.var.touch()
    with pytest.raises(ImproperlyConfigured, match=r"^MODELFORGE_VAR_DIR: "):
        use(env)
    env.var.unlink()
    use(env)


def test_a_database_that_is_a_folder_is_told(env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELFORGE_DATABASE_URL", f"sqlite:///{env.var}")
    env.var.mkdir()
    with pytest.raises(ImproperlyConfigured, match=r"^MODELFORGE_DATABASE_URL: .*is no file that uid"):
        env.database("MODELFORGE_DATABASE_URL", "sqlite:///x")


def test_a_database_whose_name_no_file_can_have_is_told(env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELFORGE_DATABASE_URL", f"sqlite:///{env.var}/{'x' * 300}")
    with pytest.raises(ImproperlyConfigured, match=r"^MODELFORGE_DATABASE_URL: .*is no file that uid"):
        env.database("MODELFORGE_DATABASE_URL", "sqlite:///x")


def test_a_kept_key_that_is_a_folder_is_told_with_both_remedies(env: Environment) -> None:
    (env.var / "secret-key").mkdir(parents=True)
    with pytest.raises(ImproperlyConfigured, match=f"secret-key cannot be read.*or set {NAME}"):
        env.secret(NAME)


@pytest.mark.parametrize("path", ["/usr", "/usr/none"], ids=["there", "to-be-made"])
def test_a_folder_of_somebody_else_is_told_with_the_uid(path: str) -> None:
    """In a process of its own, which may give up root's rights."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        if os.geteuid() == 0:
            os.setuid(NOBODY)
        try:
            folder(QUEUE, Path(path))
        except ImproperlyConfigured as fault:
            os.write(writes, str(fault).encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as told:
        uid = NOBODY if os.geteuid() == 0 else os.geteuid()
        assert told.read().startswith(f"{QUEUE}: {path} is no folder that uid {uid} can write (Permission denied).")
    os.waitpid(child, 0)
