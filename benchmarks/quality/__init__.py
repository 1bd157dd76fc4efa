"""How well search finds what is there: made-up archives of several kinds, questions as people and agents ask them, and the
figures by kind, for the half that may be looked at while the ranking is tuned and for the half that is held out.

python -m benchmarks.quality [--half tuning|held-out|both] [--misses] [--extra FILE]
"""
