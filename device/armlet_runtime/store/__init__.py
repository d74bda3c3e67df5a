"""Payloads that came after the rootfs: kept on disk so that no crash and no power loss leaves a device without one."""
