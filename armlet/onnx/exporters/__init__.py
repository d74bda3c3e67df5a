"""Programs that run in a framework's own Python: they export a model to ONNX and say what the framework makes of it.

Nobody imports them, and they need nothing of Armlet: ``export.py`` is started with a request and loads the file of the
framework beside it.
"""
