"""Models that come over the air: what a device is told to serve, how it gets there, and how it gets back."""

from __future__ import annotations
