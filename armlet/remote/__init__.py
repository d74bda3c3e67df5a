"""What machines share: finished steps, compiled objects. A cache that is down or lies costs nothing but time."""
