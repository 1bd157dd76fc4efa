"""Plain types that archive and index both know. Imports nothing of this package."""
