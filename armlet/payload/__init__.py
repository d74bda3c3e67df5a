"""Payloads: packed, signed, checked. What reads them is the device's own code, ``armlet_runtime.payload``."""
