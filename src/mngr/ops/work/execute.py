"""Run a command in an agent's work directory, with its environment."""

from __future__ import annotations

import os

from mngr.errors import Stale
from mngr.hosts import agent_files, tmux_scripts
from mngr.hosts.base import Host
from mngr.hosts.spawn import Sink
from mngr.model.quoting import quote
from mngr.model.records import AgentRecord, agent_dir, record_stem
from mngr.model.struct import Json, Struct
from mngr.ops.lifecycle import sandboxing
from mngr.ops.look.listing import Agent, check_reachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# The outer shell drops all but the basic variables of the caller's environment.
INNER = f"""[ -f "$1" ] && [ ! -h "$1" ] || {{ echo "$1 is not a regular file" >&2; exit 1; }}
. "$1" || exit 1
cd -- "$2" 2>/dev/null || {{ echo "mngr: there is no directory $2" >&2; exit 1; }}
box=$3 && shift 3 && {{ {sandboxing.WRAP}; }} && exec "$@" """
SCRIPT = tmux_scripts.CLEAN + f'clean ${{TERM+"TERM=$TERM"}} sh -c {quote(INNER)} mngr "$@"\n'

# Arguments before those of SCRIPT: the stem of the record, its revision, and the error to print if
# the newest revision is another. A record never changes within a revision.
GUARD = (
    agent_files.FUNCTIONS
    + """find_newest "$1"
[ "$best" = "$2" ] && [ "$solid" = "$2" ] || { echo "$3" >&2; exit 1; }
shift 3
"""
)


class ExecResult(Struct):
    """The result of a command on one agent."""

    agent: str
    exit_code: int
    stdout: bytes
    stderr: bytes

    def to_json(self) -> dict[str, Json]:
        return {
            "agent": self.agent,
            "exit_code": self.exit_code,
            "stdout": self.stdout.decode("utf-8", "replace"),
            "stderr": self.stderr.decode("utf-8", "replace"),
            "success": self.exit_code == 0,
        }


def exec_argv(host: Host, record: AgentRecord, argv: Sequence[str], cwd: str = "") -> list[str]:
    """Return the command that runs `argv` on the agent's host; `cwd` is relative."""
    env = os.path.join(agent_dir(host.home, record.id), "env")
    folder = os.path.join(record.work_dir, cwd)
    box = sandboxing.path(host.home, record.id)
    return ["sh", "-c", SCRIPT, "mngr", env, folder, box, *argv]


def shell_argv(host: Host, record: AgentRecord, command: str) -> list[str]:
    return exec_argv(host, record, ["sh", "-c", command])


def execute(
    agent: Agent,
    argv: Sequence[str],
    *,
    cwd: str = "",
    timeout: float,
    input: bytes | None = None,
) -> ExecResult:
    words = exec_argv(agent.host, agent.record, argv, cwd)
    done = agent.host.run(words, input=input, timeout=timeout)
    return ExecResult(agent=agent.name, exit_code=done.code, stdout=done.stdout, stderr=done.stderr)


def stream(
    agent: Agent,
    argv: Sequence[str],
    sink: Sink,
    *,
    cwd: str = "",
    timeout: float,
    remembered: bool = False,
) -> int:
    """Run a command, pass its output to `sink(1 or 2, bytes)`, and return the exit code.

    An agent that was only `remembered` is checked in the same round trip.
    """
    if not remembered:
        check_reachable(agent)
    words = exec_argv(agent.host, agent.record, argv, cwd)
    if remembered:
        return _guarded(agent, words, sink, timeout)
    return agent.host.run(words, timeout=timeout, sink=sink).code


def _guarded(agent: Agent, argv: Sequence[str], sink: Sink, timeout: float) -> int:
    """Raise Stale and run nothing if the agent has changed: it may be renamed or gone."""
    nonce = os.urandom(8).hex()
    refusal, held = f"{nonce}\n".encode(), b""

    def pass_on(stream: int, data: bytes) -> None:
        nonlocal held
        if stream == 2 and refusal.startswith(held):
            held += data
            if refusal.startswith(held):
                return
            data = held
        sink(stream, data)

    stem, rev = record_stem(agent.host.home, agent.id), str(agent.evidence.rev)
    _, _, script, name, *words = argv
    guarded = ["sh", "-c", GUARD + script, name, stem, rev, nonce, *words]
    code = agent.host.run(guarded, timeout=timeout, sink=pass_on).code
    if held == refusal:
        raise Stale(f"{agent.name} has changed since it was last seen")
    if held and refusal.startswith(held):  # the command wrote no more than this
        sink(2, held)
    return code
