"""The inference service: several models, each in a process of its own, behind one HTTP front end.

Importing this package loads nothing: no native library, no NumPy, no thread.
"""

from __future__ import annotations
