"""The canonical side: session files, read and never written. Knows nothing of the index."""
