"""The interface of agent types, and what several types share; small types override little."""

from __future__ import annotations

import os

from mngr.agents.jsonl import iso
from mngr.model.records import AgentRecord
from mngr.model.state import Evidence, Signals
from mngr.model.struct import Json, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Protocol

    class Reader(Protocol):
        """A module that reads the conversation files of a program."""

        METER: str

        def transcript(self, files: Mapping[str, bytes], /) -> list[Turn]: ...


PROMPT_LIMIT = 96 * 1024
"""Bytes; a word of an argv is limited to 128 KB."""
KINDS = ("input", "output", "cache_read", "cache_write")
"""Kinds of tokens, each with a price."""
UNREACHABLE = "unreachable"
"""Why an agent waits whose program keeps trying to reach the model's server."""


class LaunchContext(Struct):
    """What a type knows when it prepares a launch."""

    record: AgentRecord
    state_dir: str
    env: Mapping[str, str] = {}
    """The environment the agent will have, including secrets; empty in `resume`."""
    prompt: str = ""
    evidence: Evidence | None = None
    """The evidence of earlier launches; None at the first one."""
    parent: Mapping[str, bytes] = {}
    """The conversation files of the agent this one is a clone of."""
    local: bool = True
    """Whether the host has the files of this machine, such as the user's login."""

    @property
    def copies_login(self) -> bool:
        """Return whether to copy the user's login to the host, which only the user can request."""
        return not self.local and self.record.pass_login

    @property
    def work_dirs(self) -> list[str]:
        """Return the paths of the work directory that a program may use.

        Programs use the real path, which is known only on this machine.
        """
        record = self.record
        paths = [record.work_dir, os.path.join(record.work_dir, record.cwd).rstrip("/")]
        return list(dict.fromkeys([*paths, *map(os.path.realpath, paths if self.local else ())]))


class Launch(Struct):
    """The files and the command of a launch."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    files: dict[str, tuple[bytes, int]] = {}
    """Paths relative to the agent's state directory."""
    links: dict[str, str] = {}
    """The same, as symbolic links, each with its target on the host."""
    took_prompt: bool = False
    """Whether the first prompt is part of argv; otherwise it is sent as a message."""
    daemons: str = ""
    """A word in the command lines of daemons that must be ended with the program."""
    remarks: tuple[str, ...] = ()
    """Lines for stderr, such as what was not copied to the host."""


class Login(Struct):
    """How a program authenticates to its model's server."""

    kind: str
    """none, key, token (long-lived) or renewable."""
    place: str = ""
    """The variable or file it is in."""
    advice: str = ""
    """How to get a login that parallel agents can share."""
    expires: float = 0.0
    """Seconds since 1970; 0 if unknown."""


class Receipt(Struct):
    """The outcome of a message: delivered, queued, typed, blocked or failed."""

    outcome: str
    detail: str = ""

    @property
    def ok(self) -> bool:
        return self.outcome in ("delivered", "queued", "typed")


class Delivery(Struct):
    """What a type can use to find out whether a message was accepted."""

    record: AgentRecord
    text: str
    unread: Callable[[], int | None]
    """Returns the bytes that the program has not read yet; None if that is unknown."""
    ended: Callable[[], bool]
    pause: Callable[[float], None]
    before: Evidence
    """The evidence before anything was typed."""
    told: Mapping[str, bytes]
    """The conversation files before anything was typed."""
    look: Callable[[], Evidence]
    """Returns the current evidence."""
    conversation: Callable[[], Mapping[str, bytes]]
    """Returns the current conversation files."""
    press_enter: Callable[[], None]
    """Presses Enter again, for a program that took the first one as part of the text."""


class ToolCall(Struct):
    """A tool the agent used."""

    id: str
    name: str
    input: Json = None


class Turn(Struct):
    """One entry of a conversation, the same for every program."""

    type: str
    """user_message, assistant_message or tool_result."""
    text: str
    time: str = ""
    """ISO 8601."""
    id: str = ""
    model: str = ""
    tools: tuple[ToolCall, ...] = ()


class Tokens(Struct):
    """The tokens of one model."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(**{kind: getattr(self, kind) + getattr(other, kind) for kind in KINDS})

    @property
    def total(self) -> int:
        return sum(getattr(self, kind) for kind in KINDS)


def by_model(spent: Iterable[tuple[str, Tokens]]) -> dict[str, Tokens]:
    """Return the sum of the tokens of each model."""
    total: dict[str, Tokens] = {}
    for model, tokens in spent:
        total[model] = total.get(model, Tokens()) + tokens
    return total


def fits_argv(prompt: str) -> bool:
    """Return whether there is a prompt and it can be a word of the command."""
    return 0 < len(prompt.encode("utf-8", "replace")) <= PROMPT_LIMIT


def options(
    words: Sequence[str], valued: Collection[str], dropped: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the options among the words, those in `valued` with their value.

    The prompt and the options in `dropped` are left out: in a resumed conversation they would be
    carried out again.
    """
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            continue
        value = next(rest, None) if word in valued else None
        if word.partition("=")[0] not in dropped:
            kept += [word] if value is None else [word, value]
    return tuple(kept)


def reset(at: float, now: float) -> str:
    """Return when a quota is reset, or that it was: most programs do not continue by themselves."""
    when = f"{iso(at)[:19]}Z"
    return f"resets {when}" if now < at else f"was reset {when}: send it a message to continue"


class AgentType:
    """Any program in a terminal, started without a shell."""

    name = "command"
    environment: tuple[str, ...] = ()
    """Variables of the creator's environment that its agents always get; `X_*` is a prefix."""
    program = ""
    """The program that must be installed on the host, if it is always the same one."""
    install = ""
    """The command that installs it."""
    conversation: tuple[str, ...] = ()
    """Shell patterns of the files that `transcript` reads, in the state directory."""
    reader: Reader | None = None
    """The module that reads these files; without it, override `transcript` and `meter`."""
    forks = False
    """Whether a clone continues with a copy of the conversation."""
    headless = ""
    """The command that `--foreground` runs, without a screen."""
    clear_keys: tuple[str, ...] = ()
    """Keys, as tmux names them, that clear the input before a message is typed."""

    def login(self, env: Mapping[str, str]) -> Login | None:
        """Return the login that an agent with this environment uses; None if it requires none."""
        return None

    def prepare(self, context: LaunchContext) -> Launch:
        """Return the first launch."""
        return Launch(argv=context.record.argv)

    def resume(self, context: LaunchContext) -> Launch:
        """Return a later launch, which continues the conversation."""
        return self.prepare(context)

    def signals(self, evidence: Evidence) -> Signals:
        """Return the state of the program as hooks, files and the terminal report it."""
        return Signals()

    def unread(self, evidence: Evidence) -> tuple[str, ...]:
        """Return the messages that the program has queued and does not keep when it ends."""
        return ()

    def typed(self, text: str) -> str:
        """Return the keystrokes that make the program read this text."""
        return text

    def ready(self, evidence: Evidence) -> bool:
        """Return whether the program accepts input; one with its own screen requires a moment."""
        return True

    def transcript(self, files: Mapping[str, bytes]) -> list[Turn]:
        """Return the conversation, oldest first; `files` is by path in the state directory."""
        return self.reader.transcript(files) if self.reader else []

    def answer(self, evidence: Evidence, allow: bool) -> tuple[str, ...]:
        """Return the keys, as tmux names them, that answer the permission request."""
        return ()

    def meter(self) -> str:
        """Return shell lines that print the tokens used, each answer counted once.

        A line is `AGENT MODEL INPUT OUTPUT CACHE_READ CACHE_WRITE`. The shell has POSIX tools only
        and runs on the host, in the parent of the state directories; `"$@"` are the names of some
        of these. Without a meter, a type has no usage, and no limits on tokens and cost.
        """
        return self.reader.METER if self.reader else ""

    def evidence(self, delivery: Delivery) -> Receipt:
        """Return a receipt; here, text is delivered when none of it is unread on the terminal."""
        quiet = 0
        for _ in range(60):
            unread = delivery.unread()
            if unread is None:
                return Receipt(outcome="typed", detail="mngr cannot determine whether it was read")
            # tmux refills the terminal within a millisecond while it has more to hand over,
            # so three empty looks in a row mean that everything was read.
            quiet = quiet + 1 if unread == 0 else 0
            if quiet == 3:
                return Receipt(outcome="delivered")
            delivery.pause(0.01 if quiet or unread else 0.02)
        if delivery.ended():
            return Receipt(outcome="failed", detail="the agent ended before it read the message")
        return Receipt(outcome="queued", detail="typed, but the program has not read it yet")
