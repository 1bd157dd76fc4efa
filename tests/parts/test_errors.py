"""What is logged is heard only by a program that wants to hear it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness_session_history.errors import log_warning


def test_a_program_that_has_not_asked_hears_nothing() -> None:
    code = "from harness_session_history.errors import log_warning; log_warning('lost %d', 1)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_a_warning_names_its_logger_and_the_place_it_came_from(caplog: pytest.LogCaptureFixture) -> None:
    log_warning("lost %d", 1)
    (record,) = caplog.records
    assert record.name == "harness_session_history" and record.getMessage() == "lost 1"
    assert record.filename == "test_errors.py"
