"""Execution providers: how each is named, checked and appended to a session's options."""

from __future__ import annotations

import ctypes
import difflib
import os
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Sequence, Tuple, Union

from ._elsewhere import SUFFIX, append_generic, append_to, exported
from ._errors import OrtError, invalid
from ._library import Library, LibraryLike, get_available_providers, load_library
from .options import SessionOptions

# A provider's name, or its name and options.
ProviderLike = Union[str, Tuple[str, Mapping[str, Any]]]
Options = Mapping[str, str]

_SPINNING = "session.intra_op.allow_spinning"
_THREADS = "intra_op_num_threads"


@dataclass(frozen=True)
class Provider:
    """An execution provider: its official name, the option keys it takes (None: any), how it is appended."""

    name: str
    keys: tuple[str, ...] | None
    append: Callable[[Library, int, Options], None]


@dataclass(frozen=True)
class Choice:
    """A provider with the options that a session asks it to have."""

    provider: Provider
    options: Options


def _append_xnnpack(library: Library, native: int, options: Options) -> None:
    append_generic(library, native, "XNNPACK", options)


def _append_acl(library: Library, native: int, options: Options) -> None:
    fast_math = _flag("enable_fast_math", options.get("enable_fast_math", "0"))
    exported(library, "ACL", ctypes.c_bool)(native, fast_math)


def _append_npu(name: str) -> Callable[[Library, int, Options], None]:
    """For a provider whose own function takes nothing but the session's options."""

    def append(library: Library, native: int, _options: Options) -> None:
        exported(library, name)(native)

    return append


def _append_cpu(library: Library, native: int, options: Options) -> None:
    """Nothing to do: ONNX Runtime itself adds the CPU provider after all others."""


PROVIDERS = {
    "xnnpack": Provider("XnnpackExecutionProvider", (_THREADS,), _append_xnnpack),
    "acl": Provider("ACLExecutionProvider", ("enable_fast_math",), _append_acl),
    "vsinpu": Provider("VSINPUExecutionProvider", (), _append_npu("VSINPU")),
    "rknpu": Provider("RknpuExecutionProvider", (), _append_npu("Rknpu")),
    "cpu": Provider("CPUExecutionProvider", (), _append_cpu),
}


def choose(
    providers: Sequence[ProviderLike] | None,
    provider_options: Sequence[Mapping[str, Any]] | None = None,
    reported: Sequence[str] = (),
) -> list[Choice]:
    """The providers asked for, in order, with the CPU provider always last.

    ``reported`` are the official names of those in the library, which may be others than Armlet builds.
    Raises :class:`OrtError` for an unknown name or option, one named twice, or one after the CPU provider
    (which takes every node, so that one would never be used).
    """
    if isinstance(providers, str):
        raise invalid("providers is a list of names or of (name, options)")
    named = list(providers or ())
    extra = list(provider_options or [{}] * len(named))
    if len(extra) != len(named):
        raise invalid(f"{len(named)} providers and {len(extra)} provider_options")
    chosen: list[Choice] = []
    for item, more in zip(named, extra):
        name, options = (item, {}) if isinstance(item, str) else item
        choice = _choice(name, {**options, **more}, reported)
        if any(choice.provider.name == earlier.provider.name for earlier in chosen):
            raise invalid(f"{choice.provider.name} is named twice")
        if any(earlier.provider is PROVIDERS["cpu"] for earlier in chosen):
            raise invalid(f"{choice.provider.name} comes after the CPU provider and would never be used")
        chosen.append(choice)
    if not chosen or chosen[-1].provider is not PROVIDERS["cpu"]:
        chosen.append(Choice(PROVIDERS["cpu"], {}))
    return chosen


def with_thread_defaults(options: SessionOptions, choices: Sequence[Choice]) -> tuple[dict[str, Any], list[Choice]]:
    """Thread settings for the session and its providers: ``{attribute or config key: value}`` and choices.

    XNNPACK has its own thread pool, which ONNX Runtime's must not compete with: unless the user said
    otherwise, the session gets one thread that does not spin, and XNNPACK as many as the user gave the
    session, or one per core this process may use. Where ACL is asked first, it has most of the work, and its
    threads are the session's: then XNNPACK gets one.
    """
    if all(choice.provider is not PROVIDERS["xnnpack"] for choice in choices):
        return {}, list(choices)
    settings: dict[str, Any] = {}
    if not options.has_session_config_entry(_SPINNING):
        settings[_SPINNING] = "0"
    if choices[0].provider is PROVIDERS["acl"]:
        threads = "1"
    else:
        threads = str(options.intra_op_num_threads or len(os.sched_getaffinity(0)))
        if not options.assigned(_THREADS):
            settings[_THREADS] = 1
    return settings, [
        Choice(choice.provider, {_THREADS: threads, **choice.options})
        if choice.provider is PROVIDERS["xnnpack"]
        else choice
        for choice in choices
    ]


def configure(library: Library, native: int, options: SessionOptions, choices: Sequence[Choice]) -> None:
    """Append the providers to the ``OrtSessionOptions`` at ``native``, thread defaults included.

    Raises :class:`OrtError` when the library was built without one of them: running on the CPU provider
    unasked would hide it.
    """
    settings, adjusted = with_thread_defaults(options, choices)
    if _THREADS in settings:
        library.api.SetIntraOpNumThreads(native, settings[_THREADS])
    if _SPINNING in settings:
        library.api.AddSessionConfigEntry(native, _SPINNING.encode(), settings[_SPINNING].encode())
    for choice in adjusted:
        try:
            choice.provider.append(library, native, choice.options)
        except OrtError as error:
            built = ", ".join(get_available_providers(library))
            raise OrtError(
                error.code, f"{choice.provider.name}: {error.message.strip()} (in this library: {built})"
            ) from error


def try_provider(name: str, options: Mapping[str, Any], library: LibraryLike = None) -> None:
    """Append one provider to a session's options that are thrown away: no model is needed.

    Raises :class:`OrtError` where the library lacks it or refuses its options; what only shows when a model is
    loaded stays unseen. A library without exceptions may end the process.
    """
    loaded = load_library(library)
    choices = choose([(name, options)], None, get_available_providers(loaded))
    native = loaded.api.pointer("CreateSessionOptions")
    try:
        configure(loaded, native, SessionOptions(), choices)
    finally:
        loaded.api.ReleaseSessionOptions(native)


def key_of(name: str) -> str:
    """``xnnpack`` for XNNPACK, XnnpackExecutionProvider and the like."""
    key = name.lower()
    return key[: -len(SUFFIX)] if key.endswith(SUFFIX.lower()) else key


def _choice(name: str, options: Mapping[str, Any], reported: Sequence[str]) -> Choice:
    key = key_of(name)
    others = {key_of(official): official for official in reported if key_of(official) not in PROVIDERS}
    if key not in PROVIDERS and key not in others:
        known = [*PROVIDERS, *others]
        near = difflib.get_close_matches(key, known, n=1)
        hint = f'; did you mean "{near[0]}"?' if near else ""
        raise invalid(f'unknown provider "{name}"{hint} Known: {", ".join(known)}')
    provider = PROVIDERS[key] if key in PROVIDERS else Provider(others[key], None, append_to(others[key]))
    for option in options:
        if provider.keys is not None and option not in provider.keys:
            known_keys = ", ".join(provider.keys) or "none"
            raise invalid(f'{provider.name} has no option "{option}"; it has: {known_keys}')
    texts = {option: str(value) for option, value in options.items()}
    # Checked here because a library without exceptions ends the process over a number it cannot parse.
    if _THREADS in texts and not texts[_THREADS].isdecimal():
        raise invalid(f"{provider.name}: {_THREADS} is a whole number, not {texts[_THREADS]!r}")
    return Choice(provider, texts)


def _flag(name: str, text: str) -> bool:
    if text.lower() in ("1", "true", "on"):
        return True
    if text.lower() in ("0", "false", "off"):
        return False
    raise invalid(f"{name} is true or false, not {text!r}")
