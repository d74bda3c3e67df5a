"""What a worker is told before it begins, and what it tells once it is ready."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal, Mapping

from armlet_runtime.serve.chain import Wanted
from armlet_runtime.serve.interface import TensorInfo

BEAT_SECONDS = 1.0
"""How often a worker shows that it lives."""
Fault = Literal["", "trial", "budget", "chance"]
"""What kept a payload from serving: it failed its trial, or took more than its budget; or it is not to blame."""


@dataclass(frozen=True)
class Job:
    """One model, and how it is to be run. Paths are absolute."""

    model: str
    version: str
    folder: str
    """Of the payload."""
    model_file: str
    chain: tuple[Wanted, ...]
    threads: int
    cores: tuple[int, ...]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    golden: tuple[Mapping[str, Any], ...] = ()
    """As in payload.json."""
    payload: str = ""
    """sha256 of payload.json."""
    budget: Mapping[str, float | None] = field(default_factory=dict)
    """As in payload.json; empty: it is not judged."""
    min_share: Mapping[str, float] = field(default_factory=dict)
    avoid: Mapping[str, str] = field(default_factory=dict)
    """Provider -> why it is not to be tried."""
    library: str = ""
    scratch: tuple[str, ...] = ()
    """Folders for a profile; the first that can be written is used."""
    memory_mb: int | None = None
    message_bytes: int = 64 << 20

    def as_json(self) -> dict[str, Any]:
        """For a frame's header."""
        return dataclasses.asdict(self)

    @classmethod
    def of_json(cls, fields: Mapping[str, Any]) -> Job:
        """The reverse of :meth:`as_json`."""
        return cls(
            **{
                **fields,
                "chain": tuple(Wanted(**choice) for choice in fields["chain"]),
                "cores": tuple(fields["cores"]),
                "inputs": tuple(map(_tensor, fields["inputs"])),
                "outputs": tuple(map(_tensor, fields["outputs"])),
                "golden": tuple(fields["golden"]),
                "scratch": tuple(fields["scratch"]),
            }
        )


@dataclass(frozen=True)
class Ready:
    """What came of a job."""

    providers: tuple[str, ...]
    """Official names, as the session has them."""
    skipped: Mapping[str, str]
    share: Mapping[str, float]
    nodes: tuple[tuple[str, str, str], ...]
    seconds: float
    """From the first instruction to now."""
    note: str = ""
    """What is worth a line in the log, such as why there is no profile."""

    def as_json(self) -> dict[str, Any]:
        """For a frame's header."""
        return dataclasses.asdict(self)

    @classmethod
    def of_json(cls, fields: Mapping[str, Any]) -> Ready:
        """The reverse of :meth:`as_json`."""
        nodes = tuple((str(node), str(op), str(provider)) for node, op, provider in fields["nodes"])
        return cls(**{**fields, "providers": tuple(fields["providers"]), "nodes": nodes})


def _tensor(fields: Mapping[str, Any]) -> TensorInfo:
    return TensorInfo(fields["name"], fields["dtype"], tuple(fields["shape"]))
