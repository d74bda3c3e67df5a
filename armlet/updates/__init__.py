"""The operator's side of updates over the air: wishes published, blocks sent, states watched."""
