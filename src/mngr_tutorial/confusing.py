"""`confusing.md`: places where the program did not do what its manual suggests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mngr.cli.app.output import clean
from mngr.errors import Refused
from mngr_e2e.artifacts import write_whole
from mngr_outcome.outcome import Confusing
from mngr_tutorial.trials import ProposalResult

NAME = "confusing.md"
MARK = "<!-- Written by `mngr tutorial fill`, which replaces it each time. -->"
HEAD = f"""{MARK}

# Confusing spots

Places where an agent that had only the manuals and documents was misled.
"""


def refuse_foreign(path: Path) -> None:
    """Raise if the file exists and was not written by `fill`, before an agent costs money."""
    if path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(MARK):
        hint = "give it another name"
        raise Refused(
            f"{path} was not written by `mngr tutorial fill`, which would replace it", hint
        )


def of_trial(trial: ProposalResult) -> Confusing:
    proposal = trial.proposal
    setup = f"\n\nafter\n\n{proposal.setup}" if proposal.setup else ""
    ended = (
        f"timed out after {trial.seconds:g} s"
        if trial.timed_out
        else f"exit code {trial.exit_code}"
    )
    return Confusing(
        command=proposal.commands,
        tried=f"{proposal.comment or proposal.block}{setup}",
        happened=f"{ended}\n{trial.output}".rstrip("\n"),
    )


def write(path: Path, spots: Iterable[Confusing]) -> bool:
    """Write the file, or remove an earlier one; return whether there is a file now."""
    entries = [_entry(number, spot) for number, spot in enumerate(spots, 1)]
    if entries:
        write_whole(path, "\n".join([HEAD, *entries]))
    else:
        path.unlink(missing_ok=True)
    return bool(entries)


def _entry(number: int, spot: Confusing) -> str:
    title = clean(spot.command).strip().split("\n")[0].replace("`", "'")
    parts = [("Command", spot.command), ("Tried", spot.tried), ("Happened", spot.happened)]
    told = "\n\n".join(f"{name}:\n\n{_quoted(text)}" for name, text in parts)
    return f"## {number}. `{title or 'no command'}`\n\n{told}\n"


def _quoted(text: str) -> str:
    """Return the text indented, so that it is not parsed as Markdown."""
    return "\n".join(f"    {line}".rstrip() for line in clean(text).strip("\n").split("\n"))
