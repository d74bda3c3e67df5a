"""Payloads on disk: unpacked beside, checked, and moved into place when nothing of them is missing any more."""

from __future__ import annotations

import errno
import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Collection, Mapping, NamedTuple, Sequence

from armlet_runtime.payload import Payload, Trusted, verify_archive, verify_folder
from armlet_runtime.payload_folder import regular
from armlet_runtime.refusal import DAMAGED, FORM, UNSAFE, PayloadError
from armlet_runtime.signature import Verifier
from armlet_runtime.store.disk import Disk, remove_tree
from armlet_runtime.store.errors import StoreError
from armlet_runtime.store.state import Ref
from armlet_runtime.update.interface import Desired

PAYLOADS, STAGING, TRASH = "payloads", "staging", "trash"
Check = Callable[[Mapping[str, Any]], Sequence[str]]
"""payload.json -> in words, what of it this runtime cannot do."""
_PIECE = 1 << 16
_RUINED = (DAMAGED, FORM, UNSAFE)
"""A payload that was right once is of no use any more."""
_UNREADABLE = (errno.EIO, errno.EUCLEAN, errno.EBADMSG, errno.ENOTDIR)
"""The medium or the file system is damaged there."""


class Held(NamedTuple):
    """A payload in the store, verified just now."""

    folder: Path
    payload: Payload

    @property
    def ref(self) -> Ref:
        """As the state names it."""
        fields = self.payload.manifest
        return Ref(self.payload.sha256, fields["version"], fields["generation"])


class Rules(NamedTuple):
    """What a payload has to satisfy; as the arguments of :func:`verify_archive`."""

    keys: Trusted | None
    check: Check
    limit: int
    verifier: Verifier | None


class Admission:
    """The payloads below a store's folder. Not for several threads."""

    def __init__(self, disk: Disk, root: Path, rules: Rules) -> None:
        self._disk = disk
        self._payloads, self._staging, self._trash = root / PAYLOADS, root / STAGING, root / TRASH
        self._rules = rules

    def has(self, payload: str) -> bool:
        return os.path.lexists(self._payloads / payload)

    def held(self, payload: str) -> Held:
        """Raises PayloadError, OSError."""
        keys, _, limit, verifier = self._rules
        folder = self._payloads / payload
        found = verify_folder(folder, keys, limit=limit, verifier=verifier)
        if found.sha256 != payload:
            raise PayloadError(DAMAGED, "it is another payload than its folder says", "get it again from who made it")
        return Held(folder, found)

    def kept(self, desired: Desired) -> Held | None:
        """The wished payload, where it is there and whole; one that is not is thrown out.

        Raises:
            PayloadError: it is there, and nobody who is trusted signed it.
            StoreError: as :meth:`unpacked`.
        """
        if not self.has(desired.payload):
            return None
        try:
            held = self.held(desired.payload)
        except PayloadError as error:
            if error.reason not in _RUINED:
                raise
        except OSError as error:
            if error.errno not in _UNREADABLE:
                raise
        else:
            self._demand_wished(held.payload, desired)
            # An earlier run may have ended right after the folder got its name.
            self._disk.sync_folder(self._payloads)
            return held
        self._throw_out(desired.payload)
        return None

    def unpacked(self, desired: Desired, archive: Path) -> Held:
        """Takes in an archive.

        Raises:
            StoreError: ("damaged", "manifest", "contract") it is not what was wished, or of no use here.
            PayloadError: it is refused.
            OSError: the disk fails, or is full.
        """
        if _digest(archive) != desired.archive_sha256:
            raise StoreError("damaged", "what came is not what was sent: its sha256 differs")
        keys, _, limit, verifier = self._rules
        staged = self._staging / desired.payload
        remove_tree(self._disk, staged)
        self._disk.mkdir(staged)
        try:
            with regular(archive) as stream:
                payload = verify_archive(stream, keys, limit=limit, into=staged, verifier=verifier, disk=self._disk)
            self._demand_wished(payload, desired)
            self._disk.rename(staged, self._payloads / desired.payload)
        except BaseException:
            with suppress(OSError):
                remove_tree(self._disk, staged)
            raise
        self._disk.sync_folder(self._payloads)
        return Held(self._payloads / desired.payload, payload)

    def sweep(self, keep: Collection[str]) -> int:
        """Removes other payloads, and what was left half done; the bytes that were freed. Raises OSError."""
        for place in sorted(self._payloads.iterdir()):
            if place.name not in keep:
                self._throw_out(place.name)
        left = [*self._staging.iterdir(), *self._trash.iterdir()]
        return sum(remove_tree(self._disk, place) for place in sorted(left))

    def _throw_out(self, name: str) -> None:
        """Nothing is a payload any more once it began to be removed."""
        remove_tree(self._disk, self._trash / name)
        self._disk.rename(self._payloads / name, self._trash / name)
        self._disk.sync_folder(self._trash)
        self._disk.sync_folder(self._payloads)

    def _demand_wished(self, payload: Payload, desired: Desired) -> None:
        fields = payload.manifest
        if payload.sha256 != desired.payload:
            what = f"the archive holds the payload {payload.sha256}, and {desired.payload} was wished"
            raise StoreError("manifest", what, "publish it anew, as it is")
        for name in ("model", "version", "generation"):
            wanted = getattr(desired, name)
            if fields[name] != wanted:
                what = f"its {name} is {fields[name]}, and {wanted} was wished"
                raise StoreError("manifest", what, "publish it anew, as it is")
        problems = self._rules.check(fields)
        if problems:
            raise StoreError("contract", f"not for this runtime: {'; '.join(problems)}")


def _digest(path: Path) -> str:
    hasher = hashlib.sha256()
    with regular(path) as stream:
        while piece := stream.read(_PIECE):
            hasher.update(piece)
    return hasher.hexdigest()
