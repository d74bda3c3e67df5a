"""Trees for the builders of root file systems: what goes into them, and how they are written over older ones."""
