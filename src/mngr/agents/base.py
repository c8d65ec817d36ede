"""The contract every agent type keeps; small types override little."""

from __future__ import annotations

from mngr.records import AgentRecord
from mngr.state import Evidence, Signals
from mngr.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PROMPT_LIMIT = 96 * 1024
"""One word of an argv may hold 128 KB."""


class LaunchContext(Struct):
    """What a type may look at when it prepares a launch."""

    record: AgentRecord
    state_dir: str
    prompt: str = ""
    settings: Mapping[str, object] = {}


class Launch(Struct):
    """What to put on the host and run there."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    files: dict[str, tuple[bytes, int]] = {}
    """Paths relative to the agent's state directory."""
    took_prompt: bool = False
    """Whether the first prompt rides in argv; else it is sent as a message."""


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


class AgentType:
    """Any program in a terminal."""

    name = "command"
    environment: tuple[str, ...] = ()
    """Variables of the creator that agents of this type get without being asked."""

    def prepare(self, context: LaunchContext) -> Launch:
        return Launch(argv=context.record.argv)

    def resume(self, context: LaunchContext) -> Launch:
        return self.prepare(context)

    def signals(self, evidence: Evidence) -> Signals:
        return Signals()

    def evidence(self, delivery: Delivery) -> Receipt:
        """Typed text was taken when nothing of it is left unread on the terminal."""
        quiet = 0
        for _ in range(60):
            unread = delivery.unread()
            if unread is None:
                return Receipt(outcome="typed", detail="cannot see whether it was read")
            # tmux refills the terminal within a millisecond while it has more to hand over,
            # so three empty looks in a row mean that everything was read.
            quiet = quiet + 1 if unread == 0 else 0
            if quiet == 3:
                return Receipt(outcome="delivered")
            delivery.pause(0.01 if quiet or unread else 0.02)
        if delivery.ended():
            return Receipt(outcome="failed", detail="it ended before it read the message")
        return Receipt(outcome="queued", detail="typed, not read by the program yet")
