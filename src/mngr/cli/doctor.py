"""`mngr doctor`: check this machine and say what to do."""

from __future__ import annotations

from mngr.api import Mngr
from mngr.cli.output import rows, say, warn
from mngr.errors import MngrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from mngr.cli.parser import Parser
    from mngr.ops.doctor import Finding

COLUMNS = ["check", "status", "detail", "remedy"]


def configure(parser: Parser) -> None:
    parser.description = (
        "Check the programs mngr needs, the logins of coding agents, mngr's home, plugins, records "
        "and hosts, and look for stale "
        "state. Each line says what is wrong and what to do about it. Warnings do not count as "
        "problems; `absent` is an agent's program that is not installed, or a login that was not "
        "found. A renewable login that parallel agents would share is a warning."
    )
    parser.add_argument("--fix", action="store_true", help="do what can be done without asking")
    parser.add_dry_run()
    parser.exit_status = [("1", "there is a problem")]
    parser.examples = [
        ("check everything", "mngr doctor"),
        ("mend what can be mended", "mngr doctor --fix"),
        ("only what is wrong", "mngr doctor --format '{status} {detail}' | grep -v ^ok"),
    ]
    parser.see_also = ["mngr-gc", "mngr-config"]


def run(args: argparse.Namespace) -> int:
    api = Mngr(args.config, args.registry)
    findings = api.doctor()
    if args.fix and _fixed(args, findings):
        findings = Mngr(args.config, args.registry).doctor()
    rows(args, [finding.to_json() for finding in findings], COLUMNS)
    return int(any(finding.status == "problem" for finding in findings))


def _fixed(args: argparse.Namespace, findings: Sequence[Finding]) -> bool:
    """Whether anything changed, so that it is worth looking again."""
    changed = False
    for finding in findings:
        if finding.fix is None:
            continue
        if args.dry_run:
            say(args, f"Would fix {finding.check}: {finding.detail}.")
            continue
        try:
            finding.fix()
            changed = True
            say(args, f"Fixed {finding.check}: {finding.detail}.")
        except (MngrError, OSError) as error:
            warn(f"{finding.check}: {finding.detail}: not fixed: {error}")
    return changed
