"""Send a message, report success only with evidence, and wait for the reply."""

from __future__ import annotations

import os
import time
import unicodedata

from mngr.agents.base import Delivery, Receipt, Turn
from mngr.errors import MngrError, Refused, TimedOut, Unreachable, UsageError
from mngr.hosts import tmux, tty
from mngr.hosts.base import is_here
from mngr.locks import Lock
from mngr.model.quoting import join
from mngr.model.records import agent_dir
from mngr.model.state import Pane, State
from mngr.model.struct import Struct
from mngr.ops.lifecycle.running import note_event
from mngr.ops.look.listing import Agent, refreshed
from mngr.ops.talk import conversation
from mngr.ops.work import transport
from mngr.ops.world import World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LIMIT = 1 << 20
READY = 180.0
"""Seconds that a program may take to accept input before a message to it fails; if it ends or
shows a dialog, the message fails at once. OpenCode takes 12 s of CPU time: a minute on a
busy machine."""


def normalise(text: str) -> str:
    """Return the text with LF and no final newline; raise on control characters (keys)."""
    text = text.replace("\r\n", "\n").removesuffix("\n")
    for position, character in enumerate(text):
        if character not in "\t\n" and unicodedata.category(character) in ("Cc", "Cs"):
            shown = (
                f"U+{ord(character):04X}" if ord(character) > 0xFF else f"\\x{ord(character):02x}"
            )
            raise UsageError(
                f"the message contains the control character {shown} at position {position}",
                "only tabs and newlines can be sent",
            )
    if not text.strip():
        raise UsageError("the message is empty")
    if len(text.encode()) > LIMIT:
        raise UsageError(
            f"the message is larger than {LIMIT} bytes", "send a file with `mngr push` instead"
        )
    return text


def send(world: World, agent: Agent, text: str, *, timeout: float = 0.0) -> Receipt:
    """Type a message into a live agent, one at a time, and check whether it was accepted.

    A busy program has until `timeout` to read it.
    """
    text = normalise(text)
    with Lock(world.home, "message", agent.id):
        agent = _ready(world, agent)
        pane = agent.evidence.pane
        assert pane is not None
        _refuse_long_lines(agent, pane, text)
        delivery = _delivery(world, agent, pane, text)
        kind = world.agent_type(agent.record.type)
        try:
            if kind.clear_keys:
                _press(agent, pane, kind.clear_keys)
            _type(agent, pane, kind.typed(text))
            receipt = kind.evidence(delivery)
        except (Unreachable, TimedOut) as lost:
            # Typing it again could deliver it twice, so the user has to decide.
            doubt = f"{lost.message}: whether {agent.name} got the message is not known"
            raise Unreachable(doubt, f"look with `mngr capture {agent.name}`") from None
        deadline = time.monotonic() + timeout
        while receipt.outcome == "queued" and time.monotonic() < deadline:
            receipt = kind.evidence(delivery)
    if receipt.ok:
        try:
            note_event(agent.host, agent.record, "message_delivered", outcome=receipt.outcome)
        except (Unreachable, TimedOut):
            pass  # reported as a failure, a message that has arrived would be sent again
        world.emit("message_delivered", agent.host, agent.record, outcome=receipt.outcome)
    return receipt


def _ready(world: World, agent: Agent) -> Agent:
    """Return the agent once it accepts input; raise if it asks something else."""
    kind = world.agent_type(agent.record.type)
    deadline = time.monotonic() + READY
    while True:
        agent = refreshed(world, agent)
        if agent.state not in (State.RUNNING, State.WAITING):
            raise Refused(
                f"{agent.name} is {agent.verdict}: nothing was sent",
                f"start it with `mngr start {agent.name}`",
            )
        if agent.verdict.reason.startswith("permission"):
            # The text would be taken as the answer.
            raise Refused(
                f"{agent.name} waits for permission ({agent.verdict.reason}): nothing was sent",
                f"see `mngr answer {agent.name}`",
            )
        if kind.ready(agent.evidence):
            return agent
        _refuse_dialog(agent)
        if time.monotonic() > deadline:
            raise TimedOut(
                f"{agent.name} was not ready within {READY:g} s: nothing was sent",
                f"see `mngr capture {agent.name}`",
            )
        time.sleep(transport.pause(agent.host, 0.05))


def _refuse_dialog(agent: Agent) -> None:
    """Raise Refused if a dialog on the screen must be answered first."""
    from mngr.ops.talk import dialogs

    word = agent.verdict.reason.partition(":")[0]
    if word == dialogs.DIALOG and agent.now - agent.verdict.since > dialogs.STANDS:
        raise Refused(
            f"{agent.name} is not ready ({agent.verdict.reason}): nothing was sent",
            f"answer it in its terminal: `mngr connect {agent.name}`",
        )


def _refuse_long_lines(agent: Agent, pane: Pane, text: str) -> None:
    """Raise if a line is too long: a terminal in canonical mode truncates it silently."""
    longest = max(len(line.encode()) for line in text.split("\n"))
    if longest <= 1023:
        return
    script = 'uname -s; stty -a < "$1"'
    done = agent.host.run(["sh", "-c", script, "mngr", pane.tty], timeout=20)
    words = done.stdout.decode("utf-8", "replace").replace(";", " ").split()
    limit = 1023 if words[:1] == ["Darwin"] else 4095
    if "icanon" in words and longest > limit:
        raise UsageError(
            f"{agent.name} reads whole lines of at most {limit} bytes; the message has one of "
            f"{longest}: nothing was sent",
            "break the line, or send a file",
        )


# One round trip. The script continues on the host if the connection is lost or times out, so that a
# text always gets its Enter. $1 is a lock against messages from other machines; the agent can write
# to it, so the wait for it is short. Text and Enter are two calls of tmux, because one call would
# send both as a single paste.
TYPE = r"""
lock=$1 tries=0
until ln -s $$ "$lock" 2>/dev/null; do
  holder=$(readlink "$lock") && kill -0 "$holder" 2>/dev/null || rm -f "$lock"
  tries=$((tries + 1)); [ "$tries" -lt 100 ] || break
  sleep 0.1
done
trap 'rm -f "$lock"' EXIT
trap '' PIPE TERM
said=$(PASTE); code=$?
echo "$said"
[ "$said" = pasted ] || exit "$code"
PRESS
"""


def _type(agent: Agent, pane: Pane, text: str) -> None:
    host = agent.host
    buffer = f"mngr-{os.urandom(6).hex()}"
    paste = join(tmux.paste(host.socket, pane.pane_id, buffer))
    press = join(tmux.press(host.socket, pane.pane_id, ("Enter",)))
    script = TYPE.replace("PASTE", paste).replace("PRESS", press)
    lock = os.path.join(agent_dir(host.home, agent.id), ".typing")
    done = host.run(["sh", "-c", script, "mngr", lock], input=text.encode(), timeout=45)
    said = done.stdout.split()
    if said[:1] != [b"pasted"]:
        why = "it has just ended" if said == [b"dead"] else done.complaint
        raise Refused(f"nothing was sent to {agent.name}: {why}")
    if done.code or said[1:] != [b"pressed"]:
        raise MngrError(f"{agent.name} ended while the message was typed")


def _press(agent: Agent, pane: Pane, keys: tuple[str, ...]) -> None:
    done = agent.host.run(tmux.press(agent.host.socket, pane.pane_id, keys), timeout=30)
    if done.code or done.stdout.strip() != b"pressed":
        raise MngrError(f"{agent.name} ended while the message was typed")


def _delivery(world: World, agent: Agent, pane: Pane, text: str) -> Delivery:
    """Return what is known before typing, with functions that check the delivery."""
    return Delivery(
        record=agent.record,
        text=text,
        unread=(lambda: tty.unread(pane.tty)) if is_here(agent.host) else lambda: None,
        ended=lambda: refreshed(world, agent).state not in (State.RUNNING, State.WAITING),
        pause=time.sleep,
        before=agent.evidence,
        told=conversation.files(world, [agent])[agent.id],
        look=lambda: refreshed(world, agent).evidence,
        conversation=lambda: conversation.files(world, [agent])[agent.id],
        press_enter=lambda: _press(agent, pane, ("Enter",)),
    )


# replies

TICK = 0.1
QUIET = 2.0
"""Seconds without a reply after which a command such as /clear counts as done."""


class Reply(Struct):
    """The receipt of a message, and the reply."""

    receipt: Receipt
    text: str = ""


def ask(world: World, agent: Agent, text: str, *, timeout: float = 0.0) -> Reply:
    """Return the reply to the message once the turn has ended; `timeout` 0 means no timeout."""
    conversation.require(world, agent)
    before = refreshed(world, agent)
    told = len(conversation.transcript(world, agent))
    deadline = time.monotonic() + timeout if timeout else None
    receipt = send(world, agent, text)
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
    raise TimedOut(f"{agent.name} has not replied: it is {agent.verdict}")


def _same_pause(one: Agent, other: Agent) -> bool:
    return (one.state, one.verdict.reason, one.verdict.since) == (
        other.state,
        other.verdict.reason,
        other.verdict.since,
    )


def _refuse_ended(agent: Agent) -> None:
    if agent.state not in (State.RUNNING, State.CREATING):
        raise MngrError(f"{agent.name} is {agent.verdict}: no reply")


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
