"""Send a message and wait for the reply."""

from __future__ import annotations

import time

from mngr.errors import MngrError, TimedOut
from mngr.model.state import State
from mngr.model.struct import Struct
from mngr.ops.look.listing import Agent, refreshed
from mngr.ops.talk import conversation, message, transcripts
from mngr.ops.work import transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.agents.base import Receipt, Turn
    from mngr.ops.world import World

TICK = 0.1
QUIET = 2.0
"""Seconds after which a command of the program's own, such as /clear, will not be answered."""


class Reply(Struct):
    """The receipt of a message, and the reply."""

    receipt: Receipt
    text: str = ""


def ask(world: World, agent: Agent, text: str, *, timeout: float = 0.0) -> Reply:
    """Return the reply to the message once the turn has ended; `timeout` 0 means no timeout."""
    transcripts.require(world, agent)
    before = refreshed(world, agent)
    told = len(conversation.transcript(world, agent))
    deadline = time.monotonic() + timeout if timeout else None
    receipt = message.send(world, agent, text)
    if not receipt.ok:
        return Reply(receipt=receipt, text="")
    return Reply(receipt=receipt, text=_answer(world, before, told, text, deadline))


def _answer(world: World, before: Agent, told: int, text: str, deadline: float | None) -> str:
    quiet_since = time.monotonic()
    agent = before
    while deadline is None or time.monotonic() < deadline:
        agent = refreshed(world, before)
        if agent.state is not State.WAITING:
            _refuse_ended(agent)
            quiet_since = time.monotonic()
        else:
            turns = conversation.transcript(world, agent)
            turns = turns[told:] if len(turns) >= told else turns  # the conversation was shortened
            if _same_pause(refreshed(world, agent), agent):  # unchanged during the reading
                _refuse_stuck(before, agent)
                found = answer_in(turns, text)
                if found:
                    return found
                if text.startswith("/") and time.monotonic() - quiet_since > QUIET:
                    return ""
        time.sleep(transport.pause(before.host, TICK))
    raise TimedOut(f"{agent.name} has not replied: it is {agent.state} ({agent.verdict.reason})")


def _same_pause(one: Agent, other: Agent) -> bool:
    return (one.state, one.verdict.reason, one.verdict.since) == (
        other.state,
        other.verdict.reason,
        other.verdict.since,
    )


def _refuse_ended(agent: Agent) -> None:
    if agent.state not in (State.RUNNING, State.CREATING):
        raise MngrError(f"{agent.name} is {agent.state} ({agent.verdict.reason}): no reply")


def _refuse_stuck(before: Agent, agent: Agent) -> None:
    """Raise if the agent waits for another reason than the end of its turn."""
    if _same_pause(before, agent) or agent.verdict.reason.startswith("end_of_turn"):
        return
    question = agent.verdict.reason.startswith("permission")
    hint = f"see `mngr answer {agent.name}`" if question else f"see `mngr capture {agent.name}`"
    raise MngrError(f"{agent.name} is waiting ({agent.verdict.reason}): no reply", hint)


def answer_in(turns: Sequence[Turn], text: str) -> str:
    """Return the assistant's text after the last message with this text, or ""."""
    asked = [n for n, turn in enumerate(turns) if turn.type == "user_message" and _is(turn, text)]
    if not asked:
        return ""
    said = [turn.text for turn in turns[asked[-1] + 1 :] if turn.type == "assistant_message"]
    return "\n\n".join(part for part in said if part.strip())


def _is(turn: Turn, text: str) -> bool:
    """Return whether a turn contains the text; programs trim and wrap what is typed."""
    return " ".join(text.split()) in " ".join(turn.text.split())
