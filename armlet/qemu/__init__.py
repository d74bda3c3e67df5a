"""Running what was built on the target's processor, in emulation."""
