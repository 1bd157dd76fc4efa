"""Rows of the snapshot and cited bytes become answers."""
