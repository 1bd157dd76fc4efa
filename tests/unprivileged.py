"""Runs a command for which file modes count, also where the tests are run by root."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest


def bound() -> list[str]:
    """What to put before a command so that it may write only where modes allow it; skips where that cannot be had."""
    if os.name == "nt":
        pytest.skip("needs file modes")
    if os.geteuid() != 0:
        return []
    prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if shutil.which("setpriv") and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0:
        return prefix
    pytest.skip("root may write anywhere, and there is no setpriv to give that up")
