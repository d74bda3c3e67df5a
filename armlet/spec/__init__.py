"""Frozen models of everything that is read from or written to files. No I/O here."""
