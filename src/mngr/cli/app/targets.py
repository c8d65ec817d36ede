"""Find the agents that a command line names, and act on each of them."""

from __future__ import annotations

import os
import sys

from mngr.cli.app.output import one as print_one
from mngr.cli.app.output import print_result, say, warn
from mngr.cli.app.spread import spread
from mngr.errors import MngrError, NotFound, PartialFailure, UsageError, suggestion
from mngr.model.address import is_agent_id, parse_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeVar

    from mngr.api import Agent, Mngr
    from mngr.cli.app.output import Row
    from mngr.cli.app.parser import Namespace, Parser
    from mngr.model.struct import Json

    T = TypeVar("T")


def add_targets(parser: Parser, what: str, *, session: bool = False) -> None:
    """Add TARGET..., `-`, --stdin, and --session, which tmux key bindings can use."""
    help = f"{what}: names, ids or addresses; `-` reads them from standard input"
    add_target(parser, help, nargs="*")
    add_stdin(parser)
    if session:
        help = "agent with this tmux session name; repeatable"
        parser.add_argument("--session", action="append", metavar="NAME", help=help)


def add_target(
    parser: Parser,
    help: str = "name, id or address",
    *,
    dest: str = "target",
    nargs: str | None = None,
    metavar: str = "",
    kind: str = "agent",
) -> None:
    """Add TARGET, and --agent NAME as another way to give it."""
    shown = metavar or dest.upper()
    word = parser.add_argument(dest, nargs=nargs, metavar=shown, help=help, completes=kind)
    help = f"same as {shown.split()[0]}" + ("; repeatable" if nargs in ("*", "+") else "")
    kind = "agent" if kind == "snapshot" else kind
    add = parser.add_argument
    parser.alike = word, add("--agent", action="append", metavar="NAME", help=help, completes=kind)


def add_stdin(parser: Parser) -> None:
    help = "read names, one per line, from standard input"
    parser.add_argument("--stdin", action="store_true", help=help)


def agents(
    args: Namespace,
    api: Mngr,
    words: Sequence[str] | None = None,
    *,
    look: bool = True,
) -> list[Agent]:
    """Return the named agents, each once.

    A single unknown target is an error at once. Of several, those found are returned and the
    errors for the others are put into `args.failures`, which `each` reports. `look`: see
    `Mngr.find`.
    """
    found, failures = api.find(named(args) if words is None else words, look=look)
    args.failures = [*failures]
    # What is done to an agent that cannot be reached fails with the same reason.
    silent = {agent.host.ref.name for agent in found if agent.state == "UNREACHABLE"}
    footnotes(api, silent)
    if not found:
        raise_all(args.failures)
    return [*found]


def all_agents(args: Namespace, api: Mngr) -> list[Agent]:
    """Return the named agents; raise before anything is done if one is unknown."""
    chosen = agents(args, api)
    raise_all(args.failures)
    return chosen


def raise_all(failures: Sequence[MngrError]) -> None:
    """Print all errors but the last, and raise that one; do nothing if there is none."""
    for failure in failures[:-1]:
        warn(str(failure))
    if failures:
        raise failures[-1]


def named(args: Namespace) -> list[str]:
    """Return the names of agents from the command line and standard input."""
    given = list(getattr(args, "target", ()))
    words = [word for word in given if word != "-"]
    words += map(_session, getattr(args, "session", ()))
    if args.stdin or "-" in given:
        return words + lines_of_stdin()
    if not words:
        raise UsageError("no agent given", "see `mngr list`")
    return words


def lines_of_stdin() -> list[str]:
    return [line.strip() for line in sys.stdin if line.strip()]


def _session(name: str) -> str:
    """Return the agent id that a session is named by; raise for any other name."""
    if not is_agent_id(name):
        raise NotFound(f"no agent has a tmux session {name!r}", "sessions are named by agent ids")
    return name


def with_path(words: Sequence[str]) -> tuple[str, str | None, str | None]:
    """Return AGENT, PATH and LOCAL; `AGENT:PATH` is the same as `AGENT PATH`."""
    name, *rest = words
    address = None if is_agent_id(name) else parse_address(name)
    if address is not None and address.path is not None:
        rest = [address.path or ".", *rest]
        name = str(address.replace(path=None))
    if len(rest) > 2:
        raise UsageError(f"unexpected argument {rest[2]!r}", "PATH was given with the agent")
    path, local = (*rest, None, None)[:2]
    return name, path, local


def one(args: Namespace, word: str = "") -> tuple[Mngr, Agent]:
    """Return the API and the agent that TARGET, or `word`, names."""
    from mngr.api import Mngr

    api = Mngr(args.config, args.registry)
    return api, agents(args, api, [word or args.target])[0]


def check_providers(args: Namespace, names: Iterable[str]) -> None:
    """Raise UsageError for the first name that no provider has."""
    known = args.registry.names("provider")
    for name in names:
        if name not in known:
            hint = suggestion(name, known, f"there are {', '.join(known)}")
            raise UsageError(f"--provider: unknown provider {name!r}", hint)


def errors(args: Namespace) -> list[Json]:
    """Return the targets that were not found as JSON; other formats have no place for them."""
    failures = args.failures if args.format == "json" else ()
    return [{"message": str(error)} for error in failures]


def warn_failures(args: Namespace) -> int:
    """Print the targets that were not found, and return the exit code."""
    for error in args.failures:
        warn(str(error))
    return PartialFailure.exit_code if args.failures else 0


def footnotes(api: Mngr, but: Iterable[str] = ()) -> None:
    """Print the hosts that did not answer, each once, `but` not those with these names."""
    for problem in dict.fromkeys(api.problems):
        if problem.partition(": ")[0] not in but:
            warn(problem)


def each(
    args: Namespace,
    agents: Sequence[Agent],
    action: Callable[[Agent], T],
    describe: Callable[[Agent, T], tuple[Row, str]],
    finish: Callable[[], dict[str, Json]] = dict,
) -> int:
    """Act on all agents at once, print each result in order, and return the exit code.

    `finish` runs after that and returns what the JSON document has besides the agents; it can add
    to `args.failures`.
    """
    outlive_terminal()
    failures: list[MngrError] = list(getattr(args, "failures", ()))
    args.failures = failures
    missing, done = len(failures), []
    for error in failures:
        warn(str(error))
    for agent, result in spread(agents, action):
        if isinstance(result, MngrError):
            if len(agents) == 1 and not missing:
                raise result
            warn(f"{agent.name}: {result}")
            failures.append(result)
            continue
        row, note = describe(agent, result)
        done.append(row)
        _report(args, row, note)
    return concluded(args, done, failures, "agents", finish())


def concluded(
    args: Namespace,
    done: Sequence[Row],
    failures: Sequence[MngrError],
    envelope: str,
    more: Mapping[str, Json] | None = None,
) -> int:
    """Print the results of all targets as one document, if JSON, and return the exit code."""
    if args.format == "json":
        errors: list[Json] = [{"message": str(error)} for error in failures]
        listed: list[Json] = [dict(row) for row in done]
        print_one(args, {envelope: listed, "errors": errors, **(more or {})}, "")
    return (PartialFailure.exit_code if done else _worst(failures)) if failures else 0


def outlive_terminal() -> None:
    """Ignore SIGHUP: an agent that stops itself loses its terminal before the command ends."""
    if os.environ.get("MNGR_AGENT_ID"):
        import signal

        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _report(args: Namespace, row: Row, note: str) -> None:
    """Print a result: the first line of the note; the other lines are remarks."""
    if args.format == "json":
        return
    human, *remarks = note.split("\n")
    print_result(args, row, human)
    for remark in remarks:
        say(args, remark)


def _worst(failures: Iterable[MngrError]) -> int:
    """Return the exit code if all failed: their common one, else 1."""
    codes = {error.exit_code for error in failures}
    return codes.pop() if len(codes) == 1 else 1
