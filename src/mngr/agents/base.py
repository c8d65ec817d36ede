"""The contract every agent type keeps; small types override little."""

from __future__ import annotations

from mngr.model.records import AgentRecord
from mngr.model.state import Evidence, Signals
from mngr.model.struct import Json, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PROMPT_LIMIT = 96 * 1024
"""One word of an argv may hold 128 KB."""


class LaunchContext(Struct):
    """What a type may look at when it prepares a launch."""

    record: AgentRecord
    state_dir: str
    env: Mapping[str, str] = {}
    """The environment the agent will have, secrets included; `resume` does not need it again."""
    prompt: str = ""
    evidence: Evidence | None = None
    """What the launches before said; None at the first one."""
    parent: Mapping[str, bytes] = {}
    """The conversation files of the agent this one is a clone of."""
    local: bool = True
    """Whether files of this machine, such as the user's login, mean the same on the host."""

    @property
    def copies_login(self) -> bool:
        """Whether the user's login is to be copied there, which only they can ask for."""
        return not self.local and self.record.pass_login


class Launch(Struct):
    """What to put on the host and run there."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    files: dict[str, tuple[bytes, int]] = {}
    """Paths relative to the agent's state directory."""
    links: dict[str, str] = {}
    """Likewise; each becomes a symbolic link to that path on the host."""
    took_prompt: bool = False
    """Whether the first prompt rides in argv; else it is sent as a message."""
    daemons: str = ""
    """A word in the command lines of what the program leaves running; it is ended with it."""
    remarks: tuple[str, ...] = ()
    """Lines for stderr, such as what was not copied to the host."""


class Login(Struct):
    """How a program proves to its model's server whose it is."""

    kind: str
    """none, key, token (long-lived) or renewable."""
    place: str = ""
    """The variable or file it is in."""
    advice: str = ""
    """What to type for one that parallel agents can share."""
    expires: float = 0.0
    """When, in seconds since 1970; 0 where that is not known."""


class Receipt(Struct):
    """What became of a message: delivered, queued, typed, blocked or failed."""

    outcome: str
    detail: str = ""

    @property
    def ok(self) -> bool:
        return self.outcome in ("delivered", "queued", "typed")


class Delivery(Struct):
    """What a type may look at to tell whether a message was taken."""

    record: AgentRecord
    text: str
    unread: Callable[[], int | None]
    """Bytes typed and not yet read by the program; None where that cannot be seen."""
    ended: Callable[[], bool]
    pause: Callable[[float], None]
    before: Evidence
    """As it stood before anything was typed."""
    told: Mapping[str, bytes]
    """Its conversation files before anything was typed."""
    look: Callable[[], Evidence]
    """The agent's evidence now."""
    conversation: Callable[[], Mapping[str, bytes]]
    """Its conversation files now."""
    press_enter: Callable[[], None]
    """Once more: for a program that took the first one for a part of the text."""


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
    """What one model was asked and has said."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
        )

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write


class AgentType:
    """Any program in a terminal."""

    name = "command"
    environment: tuple[str, ...] = ()
    """Variables of the creator that agents of this type get without being asked; `X_*` is all
    that begin with X_."""
    program = ""
    """What has to be installed on the host, where it is always the same program."""
    install = ""
    """What to type to install it."""
    conversation: tuple[str, ...] = ()
    """Shell patterns, relative to the state directory: the files `transcript` and `usage` read."""
    forks = False
    """Whether a clone goes on with a copy of the conversation."""
    headless = ""
    """What `--foreground` runs: the program without its screen."""
    clear_keys: tuple[str, ...] = ()
    """Keys, as tmux names them, that empty the input before a message is typed into it."""

    def login(self, env: Mapping[str, str]) -> Login | None:
        """The login an agent with this environment uses; None where it needs none."""
        return None

    def prepare(self, context: LaunchContext) -> Launch:
        return Launch(argv=context.record.argv)

    def resume(self, context: LaunchContext) -> Launch:
        return self.prepare(context)

    def signals(self, evidence: Evidence) -> Signals:
        return Signals()

    def typed(self, text: str) -> str:
        """What to type so that the program reads this text."""
        return text

    def ready(self, evidence: Evidence) -> bool:
        """Whether it can be typed to; a program that draws its own screen needs a moment."""
        return True

    def transcript(self, files: Mapping[str, bytes]) -> list[Turn]:
        """The conversation, oldest first. Files by their path in the state directory."""
        return []

    def usage(self, files: Mapping[str, bytes]) -> dict[str, Tokens]:
        """By model, each answer counted once."""
        return {}

    def answer(self, evidence: Evidence, allow: bool) -> tuple[str, ...]:
        """The keys, as tmux names them, that answer the permission it asks for."""
        return ()

    def meter(self) -> str:
        """Shell lines that print one line `MODEL INPUT OUTPUT CACHE_READ CACHE_WRITE` per model.

        They run in the state directory on the host, where only POSIX tools can be counted on;
        without them, limits on tokens and cost cannot be kept.
        """
        return ""

    def evidence(self, delivery: Delivery) -> Receipt:
        """Typed text was taken when nothing of it is left unread on the terminal."""
        quiet = 0
        for _ in range(60):
            unread = delivery.unread()
            if unread is None:
                return Receipt(outcome="typed", detail="mngr cannot tell whether it was read")
            # tmux refills the terminal within a millisecond while it has more to hand over,
            # so three empty looks in a row mean that everything was read.
            quiet = quiet + 1 if unread == 0 else 0
            if quiet == 3:
                return Receipt(outcome="delivered")
            delivery.pause(0.01 if quiet or unread else 0.02)
        if delivery.ended():
            return Receipt(outcome="failed", detail="the agent ended before it read the message")
        return Receipt(outcome="queued", detail="typed, not read by the program yet")
