"""Armlet: ONNX Runtime for ARM Linux, cut down to one product's needs."""

__version__ = "0.1.0"
