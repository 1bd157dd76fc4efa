"""What is wrong with roots, sources and index, and what to do about it."""
