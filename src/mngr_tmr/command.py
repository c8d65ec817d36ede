"""`mngr tmr`: point an agent at every test, and get one branch."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

from mngr.cli.create_options import count
from mngr.cli.parser import Pairs, Parser
from mngr.durations import parse_duration
from mngr.errors import UsageError, nearest
from mngr.quoting import quote
from mngr_tmr import removing, runs, steering, viewing, working
from mngr_tmr.manual import DESCRIPTION, EXAMPLES, EXIT_STATUS, NOTES
from mngr_tmr.selecting import CHOICES

Verb = Callable[[argparse.Namespace], int]

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

USES: dict[str, tuple[str, ...]] = {
    "resume": ("yes", "pr"),
    "integrate": ("pr", "include_flagged"),
    "report": ("out",),
    "retune": (*steering.TUNABLE, *steering.BUDGETS),
    "rm": ("undo",),
}
"""The options of each verb besides --name and the common ones; `run` has all that are left."""


def configure(parser: Parser) -> None:
    parser.description, parser.notes = DESCRIPTION, NOTES
    parser.examples, parser.exit_status = EXAMPLES, EXIT_STATUS
    parser.see_also = ["mngr-create", "mngr-tutorial", "mngr-usage"]
    parser.rest_name = "PYTEST_ARG"
    help = f"{', '.join(VERBS)}; then paths to tests for `run`, or a run's name"
    words = parser.add_argument("words", nargs="+", metavar="WORD", help=help)
    parser.completes(words, "mngr_tmr.command:completed")
    _what(parser)
    _agents(parser)
    _limits(parser)
    _end(parser)
    parser.add_dry_run()


def completed(home: str, words: list[str]) -> list[str]:
    """For the shell: a verb, then the names of runs."""
    given = [word for word in words[:-1] if not word.startswith("-")]
    if not given:
        return list(VERBS)
    return [] if given[0] in ("run", "list") else runs.names(home)


def _what(parser: Parser) -> None:
    add = parser.add_argument_group("What").add_argument
    add("--name", default="", metavar="NAME", help="the run's name; its branch is tmr/NAME")
    add("--base", default="", metavar="COMMIT", help="where to begin (default: HEAD)")
    help = "which tests get an agent: %(choices)s (default %(default)s)"
    add("--only", choices=CHOICES, default="all", help=help)
    help = "give N more passing tests an agent, chosen by --seed"
    add("--sample", type=_natural, default=0, metavar="N", help=help)
    add("--seed", type=_natural, default=0, metavar="N", help="another seed, other tests")
    help = "runs per test (default %(default)s)"
    add("--repeats", type=count, default=2, metavar="N", help=help)
    help = "tests of one cluster that get an agent before the cluster is given up (default 3)"
    add("--canaries", type=count, default=3, metavar="N", help=help)
    help = "don't run a canary for tests that fail the same way"
    add("--no-canary", action="store_true", help=help)
    help = "don't measure which lines each test runs"
    add("--no-coverage", action="store_true", help=help)
    help = "give tests that still fail on the branch another agent, N rounds in all (default 3)"
    add("--rounds", type=count, default=3, metavar="N", help=help)


def _agents(parser: Parser) -> None:
    add = parser.add_argument_group("Agents").add_argument
    help = "the agent type (default: that of `mngr create`)"
    parser.completes(add("--type", default="", metavar="TYPE", help=help), "type")
    help = "one more word for the agents' command line; repeatable"
    add("--agent-arg", action="append", default=[], metavar="WORD", help=help)
    add("--provider", default="", metavar="PROVIDER", help="where they run (default: here)")
    help = "agents on each host, where the provider makes hosts (default %(default)s)"
    add("--agents-per-host", type=count, default=4, metavar="N", help=help)
    help = "an argument for building the hosts, such as image=NAME; repeatable"
    add("-b", "--build-arg", action=Pairs, default={}, metavar="K=V", help=help)
    help = "an argument for starting the hosts, passed on as it is; repeatable"
    add("-s", "--start-arg", action="append", default=[], metavar="ARG", help=help)
    # Those that `retune` takes have no default here: it must see which of them were given.
    help = "how many at once (default 4)"
    add("--max-agents", type=count, metavar="N", help=help)
    help = "how long to wait between two launches"
    add("--stagger", type=parse_duration, metavar="DURATION", help=help)
    help = "bare agents for baseline, verification and gates (default %(default)s)"
    add("--workers", type=count, default=2, metavar="N", help=help)
    help = "more tries after an agent could not be launched, or died (default 1)"
    add("--retries", type=_natural, metavar="N", help=help)
    help = "how long an agent may idle before it is reminded, and then given up (default 60s)"
    add("--idle", type=parse_duration, metavar="DURATION", help=help)


def _limits(parser: Parser) -> None:
    title = "Limits, of the run and of each agent; `retune` changes them"
    add = parser.add_argument_group(title).add_argument
    add("--max-cost", type=_money, metavar="DOLLARS", help="of the run")
    add("--max-tokens", type=count, metavar="N", help="of the run")
    add("--max-time", type=parse_duration, metavar="DURATION", help="of the run")
    add("--max-launches", type=count, metavar="N", help="agents in all")
    add("--agent-max-cost", type=_money, metavar="DOLLARS", help="of each agent")
    add("--agent-max-tokens", type=count, metavar="N", help="of each agent")
    help = "of each agent (default 30m)"
    add("--agent-timeout", type=parse_duration, metavar="DURATION", help=help)


def _end(parser: Parser) -> None:
    add = parser.add_argument_group("On the way and at the end").add_argument
    add("-y", "--yes", action="store_true", help="launch without asking")
    help = "say so when this many agents end the same way (default 5)"
    add("--alert-after", type=count, metavar="N", help=help)
    help = "run CMD on each alert, with its text in $MNGR_TMR_ALERT"
    add("--on-alert", metavar="CMD", help=help)
    help = "put changes that are held for review on the branch, last, with their flags"
    add("--include-flagged", action="store_true", help=help)
    add("--pr", action="store_true", help="push the branch and open a pull request with gh")
    add("--undo", action="store_true", help="`rm`: bring back a run that was removed")
    add("--out", default="", metavar="DIR", help="`report`: where to write it")


def _money(text: str) -> float:
    try:
        value = float(text.removeprefix("$"))
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise UsageError(f"{text[:40]!r} is not an amount of money")
    return value


def _natural(text: str) -> int:
    return 0 if text == "0" else count(text)


def run(args: argparse.Namespace) -> int:
    verb, *args.words = args.words
    if verb not in VERBS:
        raise UsageError(f"unknown command: mngr tmr {verb}", _suggestion(verb))
    args.verb = verb
    _refuse_options(args, verb)
    return VERBS[verb](args)


def _refuse_options(args: argparse.Namespace, verb: str) -> None:
    for option in args.parser.given(args):
        if not _takes(verb, option.dest):
            takers = [f"`mngr tmr {each}`" for each in VERBS if _takes(each, option.dest)]
            told = f"`mngr tmr {verb}` does not take {option.option_strings[-1]}"
            raise UsageError(told, f"it is an option of {' and '.join(takers)}")
    if args.rest and verb != "run":
        raise UsageError(f"`mngr tmr {verb}` takes no arguments for pytest", "`mngr tmr run` does")


def _takes(verb: str, option: str) -> bool:
    if verb == "run":
        return option not in (*USES["report"], *USES["rm"])
    return option == "name" or option in USES.get(verb, ())


def _suggestion(verb: str) -> str:
    near = nearest(verb, list(VERBS))
    if near:
        return f"did you mean `mngr tmr {near}`?"
    if os.path.exists(verb.partition("::")[0]):
        return f"to run its tests: `mngr tmr run {quote(verb)}`"
    return f"commands: {', '.join(VERBS)}"
