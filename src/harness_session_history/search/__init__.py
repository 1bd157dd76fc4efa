"""A query becomes ranked rows, and places in a text."""
