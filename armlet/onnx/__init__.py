"""Model work on the host: getting a model, reading it, converting it for a runtime."""
