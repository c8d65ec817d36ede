"""`mngr exec`: run a command in an agent's work directory."""

from __future__ import annotations

import sys

from mngr.api import Agent, ExecResult, Mngr
from mngr.cli.app import targets
from mngr.cli.app.output import one, print_result, warn, write_bytes
from mngr.cli.app.parser import Namespace, Parser
from mngr.cli.app.spread import add_on_error, exit_code, spread
from mngr.errors import MngrError, NotFound, Stale, TimedOut, UsageError
from mngr.model.durations import parse_duration
from mngr.model.quoting import join
from mngr.model.state import ALIVE
from mngr.model.struct import Json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HOUR = 3600.0
NOT_RUN = 125
"""The exit code in the results if mngr could not run the command."""
EXPLAINED = (NOT_RUN, TimedOut.exit_code)
"""Exit codes that come with an error of mngr."""
DESCRIPTION = """\
Run a shell command in the work directory of an agent, with the agent's environment. The agent \
itself is not affected. The last argument is the command; everything after `--` is a program with \
its arguments, run as is, without a shell.

Standard input is empty unless you pass -i. With -it the command runs in your terminal, which \
editors and shells require."""

NOTES = """\
For one agent, the output and the exit code are those of the command. For several agents, each \
line starts with the name of the agent."""


def configure(parser: Parser) -> None:
    parser.description, parser.notes = DESCRIPTION, NOTES
    parser.rest_name, parser.usage = "ARGS", "TARGET... (COMMAND | -- PROGRAM [ARGS...])"
    help = "agents (names, ids or addresses), then the command"
    targets.add_target(parser, help, nargs="+")
    targets.add_stdin(parser)
    add = parser.add_argument
    help = "directory to run in, relative to the work directory"
    add("--cwd", default="", metavar="DIR", help=help)
    help = "pass standard input to the command; one agent only"
    add("-i", "--interactive", action="store_true", help=help)
    help = "run the command in your terminal; one agent only"
    add("-t", "--tty", action="store_true", help=help)
    help = "kill the command and its children after this time (default 1h) and exit with 124"
    add("--timeout", type=parse_duration, metavar="DURATION", help=help)
    add("--stream", action="store_true", help="print lines of several agents as they are produced")
    add_on_error(parser)
    help = "first start agents that are not running (default: no)"
    add("--start", action="switch", default=False, help=help)
    parser.add_dry_run()
    parser.examples = [
        ("show changed files", "mngr exec tests 'git status --short'"),
        ("run on all agents", "mngr list --format '{name}' | mngr exec - 'git log -1 --oneline'"),
        ("run a program without a shell", "mngr exec tests -- grep -rn 'a b' src"),
        ("open a shell", "mngr exec -it tests -- bash"),
        ("pass a file", "mngr exec -i tests 'git apply' < fix.patch"),
        ("follow a command on two agents", "mngr exec --stream lint unit 'make check'"),
    ]
    parser.see_also = ["mngr-capture", "mngr-message"]


def run(args: Namespace) -> int:
    argv = _command(args)
    api = Mngr(args.config, args.registry)
    if _is_plain(args) and (agent := api.last_seen(args.target[0])):
        try:
            return _run_alone(args, api, agent, argv, remembered=True)
        except Stale:
            pass  # it changed since, or is gone: look first
    agents = targets.agents(args, api)
    _refuse_loose_words(args)
    for error in args.failures:
        warn(str(error))
    if args.dry_run:
        return _plan(args, agents, argv)
    if args.start:
        agents = [agent if agent.state in ALIVE else api.start(agent) for agent in agents]
    alone = len(agents) == 1 and not args.failures
    if args.interactive or args.tty:
        return _interact(args, api, agents, argv)
    if alone and args.format == "human":
        return _run_alone(args, api, agents[0], argv)
    return _run_all(args, api, agents, argv)


def _plan(args: Namespace, agents: Sequence[Agent], argv: Sequence[str]) -> int:
    """Print what would be run where."""
    table: list[dict[str, Json]] = [{"id": agent.id, "name": agent.name} for agent in agents]
    if args.format != "json":
        for agent, row in zip(agents, table, strict=True):
            human = f"{agent.name}: would run {join(argv)} in {agent.record.work_dir}"
            print_result(args, row, human)
    return targets.concluded(args, table, args.failures, "agents")


def _refuse_loose_words(args: Namespace) -> None:
    """Raise if a typed word names no agent: it may be part of a command that was not quoted."""
    if args.failures and not args.rest and not args.stdin and "-" not in args.target:
        first, *others = args.words
        hint = f"to run several words as one command: mngr exec {first} -- {join(others)}"
        raise NotFound(args.failures[0].message, hint)


def _is_plain(args: Namespace) -> bool:
    """Return whether there is one agent and its state does not matter."""
    other = args.dry_run or args.start or args.interactive or args.tty or args.stdin
    return args.format == "human" and not other and len(args.target) == 1 and args.target != ["-"]


def _interact(args: Namespace, api: Mngr, agents: Sequence[Agent], argv: Sequence[str]) -> int:
    """Replace this process by the command, with mngr's standard input or terminal."""
    from mngr.cli.app import terminal

    if len(agents) != 1:
        raise UsageError(f"-i and -t require one agent, not {len(agents)}")
    if args.stdin or "-" in args.target:
        raise UsageError("-i and names on standard input cannot be used together")
    if args.stream or args.timeout is not None:
        raise UsageError("-i and -t cannot be used with --stream and --timeout")
    if args.format != "human":
        raise UsageError("-i and -t print the output of the command", "leave out --format")
    if args.tty and not terminal.is_terminal():
        raise UsageError("-t requires a terminal", "use -i to pass standard input")
    return terminal.become(api.exec_argv(agents[0], argv, cwd=args.cwd, tty=args.tty))


def _command(args: Namespace) -> list[str]:
    """Remove the command from the targets and return it."""
    if args.rest:
        return list(args.rest)
    args.words = args.target
    *args.target, command = args.target
    if not args.target and not args.stdin:
        raise UsageError("missing COMMAND", "write `mngr exec TARGET 'COMMAND'`")
    if not command.strip():
        raise UsageError("the command is empty")
    return ["sh", "-c", command]


def _run_alone(
    args: Namespace, api: Mngr, agent: Agent, argv: Sequence[str], *, remembered: bool = False
) -> int:
    """Run the command, print its output as it is produced, and return its exit code."""
    limit = _timeout(args)
    try:
        return api.stream_exec(
            agent, argv, _write, cwd=args.cwd, timeout=limit, remembered=remembered
        )
    except TimedOut:
        raise _late(args) from None


def _write(fd: int, data: bytes) -> None:
    if fd == 1:
        write_bytes(data)
    else:
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()


def _late(args: Namespace) -> TimedOut:
    return TimedOut(f"the command did not finish within {_timeout(args):g} s and was killed")


def _timeout(args: Namespace) -> float:
    return HOUR if args.timeout is None else float(args.timeout)


def _run_all(args: Namespace, api: Mngr, agents: Sequence[Agent], argv: Sequence[str]) -> int:
    live = args.stream and args.format == "human"

    def run_in(agent: Agent) -> ExecResult:
        lines = Lines(agent.name, live)
        try:
            code = api.stream_exec(agent, argv, lines.take, cwd=args.cwd, timeout=_timeout(args))
        except TimedOut:
            lines.take(2, f"mngr: {_late(args)}\n".encode())
            code = TimedOut.exit_code
        lines.end()
        out, err = lines.kept
        return ExecResult(agent=agent.name, exit_code=code, stdout=bytes(out), stderr=bytes(err))

    results: list[ExecResult] = []
    total = len(agents)
    spreading = spread(
        agents, run_in, lambda r: r.exit_code == 0, args.on_error, interrupt=api.interrupt
    )
    for agent, result in spreading:
        if isinstance(result, MngrError):
            result = _impossible(agent, result)
        results.append(result)
        if args.format == "human" and not live:
            prefixed(result, _write)
        if args.format == "human" and result.exit_code not in (0, *EXPLAINED):
            warn(f"{result.agent}: exit code {result.exit_code}")
    failed = [result.agent for result in results if result.exit_code]
    _report(args, results, failed)
    missing = len(args.failures)
    return exit_code(len(failed) + missing + total - len(results), total + missing)


def _impossible(agent: Agent, error: MngrError) -> ExecResult:
    text = f"mngr: {error}\n".encode()
    return ExecResult(agent=agent.name, exit_code=NOT_RUN, stdout=b"", stderr=text)


def _report(args: Namespace, results: list[ExecResult], failed: list[str]) -> None:
    if args.format == "human":
        return
    listed: list[Json] = [result.to_json() for result in results]
    row: dict[str, Json] = {
        "results": listed,
        "failed_agents": list(failed),
        "total_executed": len(results),
        "total_failed": len(failed),
    }
    if args.format == "json":
        one(args, row, "")
    else:
        for result in results:
            one(args, result.to_json(), "")


class Lines:
    """Output of one of several agents: kept, or printed line by line behind the agent's name."""

    def __init__(self, name: str, live: bool) -> None:
        self.name, self.live = name, live
        self.kept = (bytearray(), bytearray())

    def take(self, fd: int, data: bytes) -> None:
        kept = self.kept[fd - 1]
        kept += data
        if self.live and (cut := kept.rfind(b"\n") + 1):
            _write(fd, _behind(self.name, bytes(kept[:cut])))
            del kept[:cut]

    def end(self) -> None:
        for fd, rest in enumerate(self.kept, start=1):
            if self.live and rest:
                _write(fd, _behind(self.name, bytes(rest)))


def prefixed(result: ExecResult, write: Callable[[int, bytes], None]) -> None:
    for fd, data in ((1, result.stdout), (2, result.stderr)):
        if data:
            write(fd, _behind(result.agent, data))


def _behind(name: str, data: bytes) -> bytes:
    """Return each line with the prefix `NAME: `; the last one gets its newline."""
    lines = data.removesuffix(b"\n").split(b"\n")
    return b"".join(b"%s: %s\n" % (name.encode(), line) for line in lines)
