"""Tasks that are more than a few lines: one module each, listed in tasks.py."""
