"""The build, step by step. The table of steps is in ``armlet.pipeline``."""
