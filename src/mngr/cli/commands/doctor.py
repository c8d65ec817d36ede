"""`mngr doctor`: check this machine, and print how to fix each problem."""

from __future__ import annotations

import os

from mngr.api import Mngr
from mngr.cli.app.output import asker, clean, rows, say, warn
from mngr.cli.app.tables import terminal_width
from mngr.errors import MngrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.api import Finding
    from mngr.cli.app.parser import Namespace, Parser

SETTINGS_OPTIONAL = True
SHOWS_SETTINGS = True
COLUMNS = ["check", "status", "detail", "remedy"]


def configure(parser: Parser) -> None:
    parser.description = (
        "Check the settings, the programs mngr requires, the logins of coding agents, mngr's "
        "home, plugins, records and hosts, and look for leftovers. For each problem, print the "
        "command that fixes it; exit with 1 if there is a problem. A warning is not a problem: "
        "for example, a renewable login that parallel agents would share. `absent` marks "
        "optional parts: the program or login of a coding agent, and shell completion.\n\n"
        "--fix installs missing programs with the system's package manager, if it does not "
        "ask for a password, and shell completion for bash and fish. It does not install "
        "coding agents."
    )
    help = "check this host instead of this machine"
    parser.add_argument("--host", default="", metavar="HOST", help=help)
    help = "repair problems and install missing programs"
    parser.add_argument("--fix", action="store_true", help=help)
    parser.add_dry_run()
    parser.examples = [
        ("check this machine", "mngr doctor"),
        ("check another machine", "mngr doctor --host box"),
        ("repair and install", "mngr doctor --fix"),
        ("leave out checks that are ok", "mngr doctor --format '{status} {detail}' | grep -v ^ok"),
    ]
    parser.see_also = ["mngr-gc", "mngr-config"]


def run(args: Namespace) -> int:
    api = Mngr(args.config, args.registry)
    api.ask_with(asker(args))
    findings = _findings(args, api)
    if args.fix and _fixed(args, findings):
        findings = _findings(args, Mngr(args.config, args.registry))
    _show(args, findings)
    return int(any(finding.status == "problem" for finding in findings))


def _show(args: Namespace, findings: Sequence[Finding]) -> None:
    """Print the findings; on a terminal, remedies follow the table, so that they are not cut."""
    narrow = args.format == "human" and terminal_width() > 0
    table = [finding.to_json() for finding in findings]
    rows(args, table, COLUMNS[:-1] if narrow else COLUMNS, "checks")
    if narrow:
        for each in findings:
            if each.remedy:
                print(clean(f"{each.check}: {each.remedy}"))


def _findings(args: Namespace, api: Mngr) -> list[Finding]:
    own = [] if args.host else _completion()
    return [*_settings(args), *api.doctor(args.host), *own]


def _completion() -> list[Finding]:
    """Return a finding about completion in the user's shell."""
    from mngr.api import Finding
    from mngr.cli.commands.completion import PLACES, is_set_up, set_up

    shell, home = os.path.basename(os.environ.get("SHELL", "")), os.path.expanduser("~")
    if shell not in PLACES:
        return []
    if is_set_up(shell, home):
        return [
            Finding(check="completion", status="ok", detail=f"completion is set up for {shell}")
        ]
    place, start_up = PLACES[shell]
    line = (
        "mngr completion fish | source" if shell == "fish" else f"source <(mngr completion {shell})"
    )
    return [
        Finding(
            check="completion", status="absent", detail=f"completion is not set up for {shell}",
            remedy=f"add to ~/{start_up[0]}: {line}",
            fix=(lambda: set_up(shell, home)) if place else None,
        )
    ]  # fmt: skip


def _settings(args: Namespace) -> list[Finding]:
    """Return a finding for each mistake in the settings."""
    from mngr.api import Finding
    from mngr.cli.commands.config import refusals

    refused = [each for layer in args.config.layers for each in refusals(args.registry, layer)]
    mistakes = {str(each): each for each in (*args.config.faults, *refused)}
    return [
        Finding(
            check="settings", status="problem", detail=each.message,
            remedy=each.hint or _editing(args, each.message),
        )
        for each in mistakes.values()
    ]  # fmt: skip


def _editing(args: Namespace, problem: str) -> str:
    """Return the command that edits the file at the start of the problem."""
    from mngr.settings.layers import settings_files

    files = settings_files(args.config.home, args.config.project).items()
    scopes = [f" --scope {scope}" for scope, path in files if problem.startswith(f"{path}:")]
    return f"fix it with `mngr config edit{''.join(scopes)}`"


def _fixed(args: Namespace, findings: Sequence[Finding]) -> bool:
    """Fix the findings; return whether anything changed, so that a new check is useful."""
    changed = False
    for finding in findings:
        if finding.fix is None:
            continue
        if args.dry_run:
            say(args, f"Would fix {finding.check}: {finding.detail}.")
            continue
        say(args, f"Fixing {finding.check}: {finding.detail}.")  # which may take minutes
        try:
            finding.fix()
            changed = True
        except (MngrError, OSError) as error:
            warn(f"{finding.check} is not fixed: {error}")
    return changed
