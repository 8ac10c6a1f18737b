"""What many tests of models begin with: a proven root, a job that its node's agent holds, an operator's browser."""

from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import Settings

from agent import wire
from artifacts.models import Job, StorageRoot
from tests.artifacts.ordering import SECOND, Worker, a_root, a_server, ordered
from tests.nodes import browsing


@pytest.fixture
def root() -> StorageRoot:
    """A proven root."""
    return a_root(a_server())


@pytest.fixture
def worker(root: StorageRoot) -> Worker:
    """The agent of its node."""
    return Worker(root.node)


@pytest.fixture
def job(root: StorageRoot) -> Job:
    """A job, not claimed yet."""
    return ordered(root)


@pytest.fixture
def given(job: Job) -> wire.Job:
    """The job as its agent holds it since START."""
    return Worker(job.node).take()


@pytest.fixture
def over(settings: Settings) -> timedelta:
    """How long after START the lease is over."""
    lease: timedelta = settings.JOB_LEASE
    return lease + SECOND


@pytest.fixture
def mara() -> Client:
    """An operator's browser."""
    return browsing.an_operator()
