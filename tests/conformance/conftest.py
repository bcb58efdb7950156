"""The judged cases, for every test of this folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from tests.conformance import pool


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[pool.Judged]]:
    """The judged cases of a node type."""
    folder = pool.shared(tmp_path_factory.getbasetemp())
    return cache(lambda kind: pool.judged(kind, folder))
