"""A runner that follows a script."""

from __future__ import annotations

from collections.abc import Callable

from armlet.events import Line, Sink, silent
from armlet.process import Command, Done

Answer = Done | Callable[[Command], Done]


def done(code: int = 0, *tail: str) -> Done:
    return Done(code=code, tail=tail)


class FakeRunner:
    """Answers a command by the first key that its text contains (else: success, no output), and remembers all."""

    def __init__(self, answers: dict[str, Answer] | None = None) -> None:
        self.answers = answers or {}
        self.commands: list[Command] = []

    @property
    def asked(self) -> list[str]:
        return [str(command) for command in self.commands]

    def run(self, command: Command, emit: Sink = silent) -> Done:
        self.commands.append(command)
        answer = next((answer for key, answer in self.answers.items() if key in str(command)), done())
        result = answer(command) if callable(answer) else answer
        for text in result.tail:
            emit(Line(text=text))
        return result
