"""Run on the target: several sessions with ACL, in threads and after one another; prints what came of it as JSON.

Arguments: the library, and the folder with ``mutable.ort``, ``net.ort``, ``x.npy`` and ``y.npy``.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

import numpy
from armlet_runtime import ort

library, folder = ort.load_library(sys.argv[1]), sys.argv[2]
chain = ("acl", "xnnpack", "cpu")
x, y = numpy.load(f"{folder}/x.npy"), numpy.load(f"{folder}/y.npy")
found: dict[str, Any] = {"differences": []}


def session(*, profile: bool = False) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    options.enable_profiling = profile
    options.profile_file_prefix = f"{folder}/profile"
    return ort.InferenceSession(f"{folder}/net.ort", options, providers=chain, library=library)


def use(one: ort.InferenceSession, times: int) -> None:
    for _ in range(times):
        found["differences"].append(float(abs(one.run(None, {"x": x})[0] - y).max()))


try:
    ort.InferenceSession(f"{folder}/mutable.ort", providers=chain, library=library)
except ort.OrtError as error:
    found["refused"] = error.message

first, second = session(profile=True), session()
use(first, 1)
use(second, 1)
found["providers"] = {row.op_type: row.provider for row in ort.provider_of_each_node(first.end_profiling())}
second.close()  # What the process shares must not have gone with it.
use(first, 1)
threads = [threading.Thread(target=use, args=(one, 20)) for one in (first, first, first, session())]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for _ in range(5):  # A kernel of the next one may get the address of a kernel of the last.
    last = session()
    thread = threading.Thread(target=use, args=(last, 2))
    thread.start()
    thread.join()
    last.close()
print(json.dumps(found))
