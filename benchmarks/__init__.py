"""Measurements: made-up archives of any size, search quality, speed and memory, and other tools over the same files."""
