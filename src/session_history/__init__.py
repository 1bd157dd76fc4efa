"""Alias of `harness_session_history`: the same public names under a shorter one."""

from harness_session_history import *
from harness_session_history import __all__ as __all__
