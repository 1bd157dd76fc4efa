"""How well search finds what is there: a made-up archive, questions an agent would type, and the figures by kind.

python -m benchmarks.quality [--json] [--misses]
"""
