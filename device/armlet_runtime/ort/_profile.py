"""Reading the profile that a session writes."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._errors import invalid

_SUFFIX = "_kernel_time"
# ONNX Runtime writes names as they are: quotes, backslashes and line ends in them make it no JSON.
_NAME = re.compile(r'(?<="name" :").*?(?=","args" : \{["}])', re.DOTALL)


@dataclass(frozen=True)
class NodeRun:
    """One execution of one node: which provider ran it and for how long.

    ``node`` is the node's name after optimisation (``<op_type>_<index>`` for one without a name), ``index``
    its number in its graph, ``duration_us`` in microseconds. ``output_shapes`` are those of its outputs in the layout
    that they really have, and ``output_bytes`` is what they take.
    """

    node: str
    op_type: str
    provider: str
    duration_us: int
    index: int
    output_bytes: int = 0
    output_shapes: tuple[tuple[int, ...], ...] = ()


def provider_of_each_node(profile_path: str | os.PathLike[str]) -> list[NodeRun]:
    """One row per node and run, in the order in which they ran.

    ``profile_path`` is what :meth:`InferenceSession.end_profiling` returned. Rows include the layout
    conversions that a provider asked for. Raises :class:`OrtError` when the file is no finished profile,
    :class:`OSError` when it cannot be read.
    """
    path = Path(profile_path)
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        events = json.loads(_NAME.sub(lambda found: json.dumps(found[0])[1:-1], text))
    except ValueError as error:
        raise invalid(f"{path} is no finished profile; was end_profiling called? ({error})") from error
    if not isinstance(events, list):
        raise invalid(f"{path} is no profile of ONNX Runtime")
    return [_row(event) for event in events if _is_node_run(event)]


def _is_node_run(event: Any) -> bool:
    return isinstance(event, dict) and event.get("cat") == "Node" and str(event.get("name")).endswith(_SUFFIX)


def _row(event: dict[str, Any]) -> NodeRun:
    about = event.get("args", {})
    return NodeRun(
        node=str(event["name"])[: -len(_SUFFIX)],
        op_type=str(about.get("op_name", "")),
        provider=str(about.get("provider", "")),
        duration_us=int(event.get("dur", 0)),
        index=int(about.get("node_index", -1)),
        output_bytes=int(about.get("output_size", 0)),
        # Each is {element type: shape}.
        output_shapes=tuple(tuple(shape) for one in about.get("output_type_shape", ()) for shape in one.values()),
    )
