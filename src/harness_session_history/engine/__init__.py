"""When work runs: calls, threads, worker processes."""
