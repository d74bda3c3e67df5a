"""Which nodes a provider takes: its own C++ rules, lowered into a table and evaluated over a model's graph."""
