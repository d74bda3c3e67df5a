"""The inference service as it ships."""
