"""`mngr answer`: show permission requests of agents, and answer them."""

from __future__ import annotations

from mngr.api import Agent, Mngr
from mngr.cli.app import targets
from mngr.cli.app.output import clean, one, print_result, rows
from mngr.cli.app.parser import Namespace, Parser
from mngr.errors import UsageError, suggestion
from mngr.model.durations import parse_duration
from mngr.model.struct import Json

DESCRIPTION = """\
Show the permission request of an agent or, with `allow` or `deny` (as an argument or as an \
option), answer it. The command succeeds once the agent has continued. mngr never answers requests \
by itself."""

CHOICES = {"allow": True, "yes": True, "deny": False, "no": False}


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    add = parser.add_argument
    targets.add_target(parser, "the agent", nargs="?")
    help = "answer: allow (yes) or deny (no)"
    add("choice", nargs="?", metavar="CHOICE", help=help, completes=("allow", "deny"))
    add("--allow", action="store_true", help="allow this request")
    add("--deny", action="store_true", help="deny this request")
    add("--all-pending", action="store_true", help="list all agents with a pending request")
    help = "time for the agent to continue; then exit with 124 (default 30s)"
    add("--timeout", type=parse_duration, default=30.0, metavar="DURATION", help=help)
    parser.add_dry_run()
    parser.examples = [
        ("list pending requests", "mngr answer --all-pending"),
        ("show the request of an agent", "mngr answer foo"),
        ("allow it", "mngr answer foo --allow"),
        ("deny it", "mngr answer foo deny"),
    ]
    parser.see_also = ["mngr-message", "mngr-wait", "mngr-connect"]


def run(args: Namespace) -> int:
    allow = _choice(args)
    api = Mngr(args.config, args.registry)
    if args.all_pending:
        if args.target or allow is not None:
            raise UsageError(
                "--all-pending only lists requests",
                "answer them one by one: `mngr answer AGENT allow`",
            )
        return _list(args, api)
    if not args.target:
        raise UsageError("no agent given", "see `mngr answer --all-pending`")
    agent = targets.agents(args, api, [args.target])[0]
    question = api.question(agent)
    if allow is None or args.dry_run:
        one(args, _row(agent, question), question)
        return 0
    after = api.answer(agent, allow, timeout=args.timeout)
    word = "allow" if allow else "deny"
    done = "Allowed" if allow else "Denied"
    human = f"{done} {agent.name}; it is {after.state} ({clean(after.verdict.reason)})."
    print_result(args, {**_row(after, question), "answer": word}, human)
    return 0


def _choice(args: Namespace) -> bool | None:
    given = [flag for flag in ("allow", "deny") if getattr(args, flag)]
    if args.choice is not None:
        if args.choice.lower() not in CHOICES:
            hint = suggestion(args.choice.lower(), CHOICES, f"choose from {', '.join(CHOICES)}")
            raise UsageError(f"CHOICE: unknown value {args.choice!r}", hint)
        given.append(args.choice.lower())
    if len({CHOICES[word] for word in given}) > 1:
        raise UsageError("allow and deny cannot be used together", "choose one")
    return CHOICES[given[0]] if given else None


def _row(agent: Agent, question: str) -> dict[str, Json]:
    return {
        "id": agent.id,
        "name": agent.name,
        "question": question,
        "answer": None,
        "state": str(agent.state),
        "state_reason": agent.verdict.reason,
    }


def _list(args: Namespace, api: Mngr) -> int:
    table = [_row(agent, question) for agent, question in api.pending()]
    targets.footnotes(api)
    rows(args, table, ["name", "question"], "agents", empty="No pending requests found")
    return 0
