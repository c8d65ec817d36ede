"""`mngr message`: send a message to agents and report whether it was delivered."""

from __future__ import annotations

import sys

from mngr.api import Agent, Mngr, Receipt, Reply
from mngr.cli.app import targets, terminal
from mngr.cli.app.output import clean, print_result, rows, say, warn
from mngr.cli.app.parser import Namespace, Parser
from mngr.cli.app.spread import add_on_error, exit_code, spread
from mngr.cli.app.text import given_text, read_stdin
from mngr.errors import MngrError, TimedOut, Unreachable, UsageError
from mngr.model.durations import parse_duration
from mngr.model.quoting import join
from mngr.model.state import ALIVE
from mngr.model.struct import Json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DESCRIPTION = """\
Type a message into the terminal of an agent, followed by Enter, and report whether the program \
read it: `delivered`; `queued` if the program is busy; `typed` if mngr cannot determine it. The \
message comes from -m, a file, standard input, or, on a terminal, your editor.

With --wait, wait for the agent's reply and print it. The command fails if the agent asks for \
permission instead, or stops because of an error or an exhausted quota."""

NOTES = """\
Tabs and newlines are the only control characters that can be sent. A program that reads whole \
lines accepts at most 4,095 bytes per line (1,023 on macOS); a longer line is rejected before \
anything is typed."""


def configure(parser: Parser) -> None:
    parser.description, parser.notes = DESCRIPTION, NOTES
    targets.add_targets(parser, "recipients")
    add = parser.add_argument
    add("-m", "--message", metavar="TEXT", help="text of the message")
    help = "file with the message; `-` is standard input"
    add("--message-file", metavar="FILE", help=help, completes="file")
    add("--start", action="store_true", help="start agents that are not running")
    add("--wait", action="store_true", help="wait for the reply and print it")
    help = "time for the agent to read the message or, with --wait, to reply; then exit with 124"
    add("--timeout", type=parse_duration, default=0.0, metavar="DURATION", help=help)
    add_on_error(parser)
    parser.add_dry_run()
    parser.examples = [
        ("send a message", "mngr message tests -m 'yes, continue'"),
        ("send a file to two agents", "mngr message one two --message-file plan.md"),
        ("send standard input", "git diff | mngr message review"),
        ("write the message in your editor", "mngr message tests"),
        ("ask, and print the reply", "mngr message review -m 'Is it safe?' --wait --timeout 10m"),
    ]
    parser.see_also = ["mngr-transcript", "mngr-answer", "mngr-capture", "mngr-wait"]


def run(args: Namespace) -> int:
    from mngr.api import normalise

    api = Mngr(args.config, args.registry)
    agents = targets.agents(args, api)
    text = normalise(_text(args, agents))

    def send(agent: Agent) -> Reply:
        if args.dry_run:
            detail = f"{len(text.encode())} bytes would be sent"
            return Reply(receipt=Receipt(outcome="dry-run", detail=detail))
        if args.start and agent.state not in ALIVE:
            agent = api.start(agent)
        if args.wait:
            return api.ask(agent, text, timeout=args.timeout)
        return Reply(receipt=api.message(agent, text, timeout=args.timeout))

    # Without --wait, Ctrl-C lets the messages arrive that are being typed.
    spreading = spread(
        agents,
        send,
        lambda r: _good(args, r.receipt),
        args.on_error,
        interrupt=api.interrupt if args.wait else None,
    )
    found = [
        (agent, result if isinstance(result, Reply) else _refusal(result))
        for agent, result in spreading
    ]
    _report(args, found)
    return _code(args, [reply.receipt for _, reply in found])


def _refusal(error: MngrError) -> Reply:
    outcome = "late" if isinstance(error, TimedOut) else "refused"
    if isinstance(error, Unreachable):
        outcome = "unreachable"
    return Reply(receipt=Receipt(outcome=outcome, detail=str(error)))


def _text(args: Namespace, agents: Sequence[Agent]) -> str:
    text = given_text(args)
    if args.message_file == "-" and _names_from_stdin(args):
        raise UsageError("standard input cannot contain both the names and the message")
    if text is not None:
        return text
    if sys.stdin.isatty():
        _explain_words(args, agents)
    if terminal.is_terminal() and not args.headless:
        return terminal.compose()
    if _names_from_stdin(args) or sys.stdin.isatty():
        raise UsageError("no message given", "use -m TEXT or --message-file FILE")
    text = read_stdin()
    if not text:
        _explain_words(args, agents)
    return text


def _explain_words(args: Namespace, agents: Sequence[Agent]) -> None:
    """Explain `message fix hello`: the last words were meant to be the text."""
    known = [word for word in args.target if any(word in (a.name, a.id) for a in agents)]
    words = args.target[len(known) :]
    if args.failures and words and known == args.target[: len(known)]:
        right = join(["mngr", "message", *known, "-m", " ".join(words)])
        raise UsageError(f"there is no agent {words[0]!r}", f"to send this text: {right}")


def _names_from_stdin(args: Namespace) -> bool:
    return args.stdin or "-" in args.target


def _report(args: Namespace, found: list[tuple[Agent, Reply]]) -> None:
    for error in args.failures:
        warn(str(error))
    if args.format != "human":
        table = [_row(args, agent, reply) for agent, reply in found]
        rows(args, table, [], "results", targets.errors(args))
        return
    for agent, reply in found:
        receipt = reply.receipt
        if receipt.outcome in ("refused", "late", "unreachable"):
            named = receipt.detail.startswith(agent.name)
            warn(receipt.detail if named else f"{agent.name}: {receipt.detail}")
            continue
        detail = f" ({receipt.detail})" if receipt.detail else ""
        if not args.wait:
            print_result(args, _row(args, agent, reply), f"{agent.name}: {receipt.outcome}{detail}")
        else:
            say(args, f"{agent.name}: {receipt.outcome}{detail}")
        if reply.text:
            print(f"{agent.name}:\n{clean(reply.text)}\n" if len(found) > 1 else clean(reply.text))


def _row(args: Namespace, agent: Agent, reply: Reply) -> dict[str, Json]:
    receipt = reply.receipt
    row: dict[str, Json] = {"id": agent.id, "name": agent.name}
    row |= {"outcome": receipt.outcome, "detail": receipt.detail}
    return {**row, "reply": reply.text} if args.wait else row


def _good(args: Namespace, receipt: Receipt) -> bool:
    if args.timeout and receipt.outcome == "queued" and not args.wait:
        return False
    return receipt.ok or receipt.outcome == "dry-run"


def _code(args: Namespace, receipts: list[Receipt]) -> int:
    failed = [receipt for receipt in receipts if not _good(args, receipt)]
    late = [receipt for receipt in failed if receipt.outcome in ("queued", "late")]
    if late and len(late) == len(receipts) and not args.failures:
        return TimedOut.exit_code
    if failed and all(receipt.outcome == "unreachable" for receipt in receipts):
        return Unreachable.exit_code
    missing = len(args.failures)
    return exit_code(len(failed) + missing, len(receipts) + missing)
