"""`mngr tmr`: the command line, with its verbs and options."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from mngr.cli.app.options import Option
from mngr.cli.app.options import count as whole
from mngr.cli.app.parser import Namespace, Parser
from mngr.cli.commands.create_options import count
from mngr.cli.commands.limit_values import dollars, tokens
from mngr.errors import UsageError, nearest
from mngr.model.durations import parse_duration
from mngr.model.quoting import quote
from mngr_tmr.cli import removing, steering, viewing, working
from mngr_tmr.cli.manual import DESCRIPTION, EXAMPLES, NOTES, SCREENS
from mngr_tmr.run import runs
from mngr_tmr.run.selecting import CHOICES

Verb = Callable[[Namespace], int]

_natural = partial(whole, most=1000)

VERBS: dict[str, Verb] = {
    "run": working.run,
    "resume": working.resume,
    "integrate": working.integrate,
    "list": viewing.list_runs,
    "show": viewing.show,
    "watch": viewing.watch,
    "report": viewing.report,
    "pause": steering.pause,
    "unpause": steering.unpause,
    "retune": steering.retune,
    "cancel": steering.cancel,
    "rm": removing.rm,
}


def configure(parser: Parser) -> None:
    parser.description, parser.notes = DESCRIPTION, NOTES
    parser.examples = EXAMPLES
    parser.see_also = ["mngr-create", "mngr-tutorial", "mngr-usage"]
    parser.verbs, parser.rest_name = SCREENS, "PYTEST_ARG"
    help = f"{', '.join(VERBS)}; then paths of tests for `run`, or the name of a run"
    kind = "mngr_tmr.cli.command:completed"
    metavar = "VERB [PATH|RUN]"
    parser.add_argument("words", nargs="+", metavar=metavar, help=help, completes=kind)
    _what(parser)
    _agents(parser)
    _limits(parser)
    _end(parser)
    parser.add_dry_run()


def completed(home: str, words: list[str]) -> list[str]:
    """Return the completions for the shell: verbs, then names of runs."""
    given = [word for word in words[:-1] if not word.startswith("-")]
    if not given:
        return list(VERBS)
    return [] if given[0] in ("run", "list") else runs.names(home)


def _what(parser: Parser) -> None:
    add = parser.add_argument_group("Run and tests").add_argument
    add("--name", default="", metavar="NAME", help="name of the run; its branch is tmr/NAME")
    add("--base", default="", metavar="COMMIT", help="commit to start from (default: HEAD)")
    help = "tests: %(choices)s (default %(default)s)"
    add("--only", choices=CHOICES, default="all", help=help)
    help = "start agents for N more passing tests, chosen at random"
    add("--sample", type=_natural, default=0, metavar="N", help=help)
    add(
        "--seed",
        type=whole,
        default=0,
        metavar="N",
        help="seed of the random choice (default 0)",
    )
    help = "runs per test (default %(default)s)"
    add("--repeats", type=count, default=2, metavar="N", help=help)
    help = "tests of a cluster to try before giving up on it (default 3)"
    add("--canaries", type=count, default=3, metavar="N", help=help)
    help = "don't run a canary for tests that fail the same way"
    add("--no-canary", action="store_true", help=help)
    help = "don't measure which lines each test executes"
    add("--no-coverage", action="store_true", help=help)
    help = "rounds of agents for tests that still fail on the branch (default 3)"
    add("--rounds", type=count, default=3, metavar="N", help=help)


def _agents(parser: Parser) -> None:
    add = parser.add_argument_group("Agents").add_argument
    help = "agent type (default: as for `mngr create`)"
    add("--type", default="", metavar="TYPE", help=help, completes="type")
    help = "argument for the agents' program; repeatable"
    add("--agent-arg", action="append", default=[], metavar="WORD", help=help)
    add("--provider", default="", metavar="PROVIDER", help="provider of the hosts (default: local)")
    help = "agents per host, if the provider creates hosts (default %(default)s)"
    add("--agents-per-host", type=count, default=4, metavar="N", help=help)
    help = "argument for creating the hosts, such as image=NAME; repeatable"
    add("-b", "--build-arg", action="pairs", default={}, metavar="K=V", help=help)
    help = "argument for starting the hosts, passed on as is; repeatable"
    add("-s", "--start-arg", action="append", default=[], metavar="ARG", help=help)
    # Options of `retune` have no default here, so that it sees which of them were given.
    help = "agents at the same time (default 4)"
    add("--max-agents", type=count, metavar="N", help=help)
    help = "time between two agent starts (default 0s)"
    add("--stagger", type=parse_duration, metavar="DURATION", help=help)
    help = "workers that run tests for baseline, verification and gates (default %(default)s)"
    add("--workers", type=count, default=2, metavar="N", help=help)
    help = "retries after an agent failed to start or died (default 1)"
    add("--retries", type=_natural, metavar="N", help=help)
    help = "idle time before an agent is reminded, and then stopped (default 60s)"
    add("--idle", type=parse_duration, metavar="DURATION", help=help)


def _limits(parser: Parser) -> None:
    title = "Limits"
    add = parser.add_argument_group(title).add_argument
    add("--max-cost", type=dollars, metavar="DOLLARS", help="cost budget of the run")
    add("--max-tokens", type=tokens, metavar="N", help="token budget of the run")
    add("--max-time", type=parse_duration, metavar="DURATION", help="time limit of the run")
    add("--max-launches", type=count, metavar="N", help="maximum number of agents")
    add("--agent-max-cost", type=dollars, metavar="DOLLARS", help="cost budget of each agent")
    add("--agent-max-tokens", type=tokens, metavar="N", help="token budget of each agent")
    help = "time limit of each agent (default 30m)"
    add("--agent-timeout", type=parse_duration, metavar="DURATION", help=help)


def _end(parser: Parser) -> None:
    add = parser.add_argument_group("Other").add_argument
    add("-y", "--yes", action="store_true", help="start agents without asking")
    help = "warn when N agents end in the same way (default 5)"
    add("--alert-after", type=count, metavar="N", help=help)
    help = "shell command to run on each warning; its text is in $MNGR_TMR_ALERT"
    add("--on-alert", metavar="CMD", help=help)
    help = "put changes that are held for review on the branch, last, with their flags"
    add("--include-flagged", action="store_true", help=help)
    add("--pr", action="store_true", help="push the branch and open a pull request with gh")
    add("--undo", action="store_true", help="`rm`: restore a removed run")
    add("--out", default="", metavar="DIR", help="`report`: directory for the pages")


def run(args: Namespace) -> int:
    verb, *args.words = args.words
    if verb not in VERBS:
        raise UsageError(f"unknown command: mngr tmr {verb}", _suggestion(verb))
    args.verb = verb
    _refuse_options(args, verb)
    return VERBS[verb](args)


def _refuse_options(args: Namespace, verb: str) -> None:
    for option in args.parser.given(args):
        if not _takes(verb, option):
            takers = [f"`mngr tmr {each}`" for each in VERBS if _takes(each, option)]
            told = f"`mngr tmr {verb}` does not take {option.option_strings[-1]}"
            raise UsageError(told, f"it is an option of {' and '.join(takers)}")
    if args.rest and verb != "run":
        raise UsageError(f"`mngr tmr {verb}` takes no arguments for pytest", "`mngr tmr run` does")


def _takes(verb: str, option: Option) -> bool:
    """Return whether a verb has an option; `run` has all but those of `report` and `rm`."""
    if option.dest == "name":
        return True
    if verb == "run":
        return not (_takes("report", option) or _takes("rm", option))
    return not {*option.option_strings}.isdisjoint(SCREENS[verb][2])


def _suggestion(verb: str) -> str:
    near = nearest(verb, list(VERBS))
    if near:
        return f"did you mean `mngr tmr {near}`?"
    if os.path.exists(verb.partition("::")[0]):
        return f"to run its tests: `mngr tmr run {quote(verb)}`"
    return f"commands: {', '.join(VERBS)}"
