"""Opening a model, and trying it before anybody asks it: golden vectors, and which provider runs what."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from armlet_runtime import ort
from armlet_runtime.serve import budget, chain, golden, machine
from armlet_runtime.serve.golden import TrialError
from armlet_runtime.serve.job import Job, Ready
from armlet_runtime.serve.unchanged import sha256_of

_XNNPACK = "xnnpack"
_THREADS = "intra_op_num_threads"
_SPINNING = "session.intra_op.allow_spinning"
# Enough for any profile of a warm-up.
_LEAST_FREE = 4 << 20
_MOST_NODES = 10_000


def options_for(job: Job, attempt: Sequence[chain.Wanted], profile: str) -> tuple[ort.SessionOptions, list[Any]]:
    """Session options and providers: nothing spins, and where XNNPACK is in the chain it gets the threads.

    ``profile`` is the prefix of the profile's path, empty for none.
    """
    options = ort.SessionOptions()
    options.inter_op_num_threads = 1
    options.add_session_config_entry(_SPINNING, "0")
    options.logid = job.model
    names = [choice.name for choice in attempt]
    # ACL computes with ONNX Runtime's own pool; where it comes first XNNPACK's would only compete.
    xnnpack_first = _XNNPACK in names and names[0] != "acl"
    options.intra_op_num_threads = 1 if xnnpack_first else job.threads
    if profile:
        options.enable_profiling = True
        options.profile_file_prefix = profile
    own = {_THREADS: str(job.threads if xnnpack_first else 1)}
    providers = [(c.name, {**own, **c.options} if c.name == _XNNPACK else dict(c.options)) for c in attempt]
    return options, providers


class Trial:
    """A model on its way into service."""

    def __init__(self, job: Job, trying: Callable[[Sequence[str]], None]) -> None:
        self._job = job
        self._trying = trying
        self._notes: list[str] = []

    def run(self) -> tuple[ort.InferenceSession, Ready]:
        """An open session whose golden vectors hold.

        ``trying`` (given when made) is told each chain before it is tried. Raises :class:`TrialError`,
        :class:`armlet_runtime.ort.OrtError`, :class:`OSError` where the model cannot be read.
        """
        job = self._job
        self._demand_unchanged()
        # Of a file that cannot be opened, ONNX Runtime says no more than "Invalid fd".
        Path(job.model_file).open("rb").close()
        try:
            library = ort.load_library(job.library or None)
        except ort.LibraryError as error:
            raise TrialError(machine.foreign(job.library) or error.message) from error
        usable, skipped = chain.usable(job.chain, ort.get_available_providers(library), job.avoid)
        usable, refused = self._taken(usable, library)
        skipped.update(refused)
        folder = self._scratch()
        try:
            prefix = str(Path(folder, "profile")) if folder else ""

            def make(attempt: Sequence[chain.Wanted]) -> ort.InferenceSession:
                self._trying([choice.name for choice in attempt])
                options, providers = options_for(job, attempt, prefix)
                return ort.InferenceSession(job.model_file, options, providers, library=library)

            session, _, failed = chain.first_that_works(usable, make)
            self._demand_declared(session)
            self._compare(session)
            nodes = self._profile(session) if folder else ()
            self._judge(session)
        finally:
            if folder:
                shutil.rmtree(folder, ignore_errors=True)
        counts = Counter(provider for _, _, provider in nodes)
        share = {provider: count / len(nodes) for provider, count in counts.items()}
        skipped.update(failed)
        self._demand_shares(share, skipped)
        providers = tuple(session.get_providers())
        return session, Ready(providers, skipped, share, nodes[:_MOST_NODES], 0.0, "; ".join(self._notes))

    def _demand_unchanged(self) -> None:
        """What was verified may lie long back: another worker is started whenever one fails."""
        for path, sha256 in self._job.files:
            if sha256_of(Path(self._job.folder, path)) != sha256:
                raise TrialError(f"{path} has changed since it was verified")

    def _taken(
        self, choices: Sequence[chain.Wanted], library: ort.Library
    ) -> tuple[list[chain.Wanted], dict[str, str]]:
        """The providers whose options the library takes, and why the others are left out."""
        refused: dict[str, str] = {}
        for choice in choices:
            if choice.options:
                self._trying([choice.name])
                reason = chain.refusal(choice, library)
                if reason and choice.name == chain.CPU:
                    raise TrialError(f"nothing works without the CPU provider, and its options are refused: {reason}")
                if reason:
                    refused[choice.name] = f"its options are refused: {reason}"
        return [choice for choice in choices if choice.name not in refused], refused

    def _scratch(self) -> str:
        for place in (*self._job.scratch, tempfile.gettempdir() if not self._job.scratch else "", "/dev/shm"):
            if not place:
                continue
            try:
                folder = tempfile.mkdtemp(prefix="armlet-profile-", dir=place)
            except OSError:
                continue
            if shutil.disk_usage(folder).free >= _LEAST_FREE:
                return folder
            shutil.rmtree(folder, ignore_errors=True)
        self._notes.append("no profile: there is no folder with room that can be written")
        return ""

    def _demand_declared(self, session: ort.InferenceSession) -> None:
        for kind, args, declared in (
            ("inputs", session.get_inputs(), self._job.inputs),
            ("outputs", session.get_outputs(), self._job.outputs),
        ):
            other = [arg.type for arg in args if not arg.type.startswith("tensor(")]
            if other:
                raise TrialError(f"one of its {kind} is {other[0]}, and only tensors can be served")
            found = sorted((arg.name, arg.type[len("tensor(") : -1]) for arg in args)
            if found != sorted((info.name, info.dtype) for info in declared):
                listed = ", ".join(f"{name}: {dtype}" for name, dtype in found)
                raise TrialError(f"its {kind} are not those that payload.json declares, but {listed}")

    def _compare(self, session: ort.InferenceSession) -> None:
        folder = Path(self._job.folder)
        for case in self._job.golden:
            feed = {entry["name"]: golden.tensor_of(folder, entry) for entry in case["inputs"]}
            names = [entry["name"] for entry in case["outputs"]]
            try:
                results = session.run(names, feed)
            except ort.OrtError as error:
                raise TrialError(f'golden "{case["name"]}": {error.message}') from error
            for entry, got in zip(case["outputs"], results):
                wanted = golden.tensor_of(folder, entry)
                found = golden.difference(got, wanted, case["atol"], case["rtol"])
                if found:
                    raise TrialError(f'golden "{case["name"]}": output "{entry["name"]}": {found}')
        if not self._job.golden:
            self._run_on_zeros(session)

    def _judge(self, session: ort.InferenceSession) -> None:
        """After the profile, which costs time itself."""
        if not any(self._job.budget.values()):
            return
        folder = Path(self._job.folder)
        feeds = [{e["name"]: golden.tensor_of(folder, e) for e in case["inputs"]} for case in self._job.golden]
        turns = itertools.cycle(feeds or [self._zeros()])
        try:
            told = budget.judge(self._job.budget, lambda: session.run(None, next(turns)))
        except ort.OrtError as error:
            if feeds:
                raise
            told = f"its time was not measured, since it does not take zeros: {error.message}"
        self._notes.append(told)

    def _zeros(self) -> dict[str, ort.Tensor]:
        return {info.name: golden.zeros(info.dtype, info.shape) for info in self._job.inputs}

    def _run_on_zeros(self, session: ort.InferenceSession) -> None:
        try:
            session.run(None, self._zeros())
        except ort.OrtError as error:
            # Zeros are nobody's input, so nothing is proved against the model.
            self._notes.append(f"it was not warmed up, since it does not take zeros: {error.message}")

    def _profile(self, session: ort.InferenceSession) -> tuple[tuple[str, str, str], ...]:
        try:
            rows = ort.provider_of_each_node(session.end_profiling())
        except (ort.OrtError, OSError) as error:
            self._notes.append(f"no profile: {error}")
            return ()
        # Each golden vector runs every node, and a loop its body's many times.
        return tuple({(row.index, row.node): (row.node, row.op_type, row.provider) for row in rows}.values())

    def _demand_shares(self, share: Mapping[str, float], skipped: Mapping[str, str]) -> None:
        short = chain.short_of(self._job.min_share, share)
        if short:
            reasons = [f"{name}: {skipped[name]}" for name in self._job.min_share if name in skipped]
            raise TrialError("; ".join([*short, *reasons, *self._notes]))
