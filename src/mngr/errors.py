"""Every error mngr raises on purpose, each with the exit code the CLI returns for it.

MngrError                 1    something failed
├── UsageError            2    the command line or a setting is wrong
│   └── UnknownSetting    2    no setting has that name
├── PartialFailure        3    some targets failed, others are done
├── NotFound              4    nothing has that name
│   └── Ambiguous         4    more than one thing has that name
├── Unreachable           5    a host did not answer
├── TimedOut              124  a deadline passed
├── Refused               1    it could lose work, or requires confirmation
├── Taken                 1    the name or branch already exists
├── Stale                 1    a record was changed by another process
├── BadRecord             1    a file of mngr cannot be read
└── MissingProgram        1    a required program is not installed
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class MngrError(Exception):
    """An error: `message` names what failed and on what, `hint` what to do next."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        if not self.hint:
            return self.message
        if self.message.endswith((".", "?", "!")):  # text of another program
            return f"{self.message} {self.hint[0].upper()}{self.hint[1:]}"
        return f"{self.message}; {self.hint}"


class UsageError(MngrError):
    """The command line or a setting is wrong."""

    exit_code = 2


class UnknownSetting(UsageError):
    """No setting has that name; in a file or a variable it is left out with a warning."""


class PartialFailure(MngrError):
    """Some targets failed, others are done."""

    exit_code = 3


class NotFound(MngrError):
    """Nothing has that name."""

    exit_code = 4


class Ambiguous(NotFound):
    """More than one thing has that name."""


class Unreachable(MngrError):
    """A host did not answer."""

    exit_code = 5


class TimedOut(MngrError):
    """A deadline passed."""

    exit_code = 124


class Refused(MngrError):
    """It could lose work, or requires confirmation."""


class Taken(MngrError):
    """The name or branch already exists."""


class Stale(MngrError):
    """A record was changed by another process."""


class BadRecord(MngrError):
    """A file of mngr cannot be read."""


class MissingProgram(MngrError):
    """A required program is not installed."""


def shorten(text: str, most: int = 60) -> str:
    """Return the text cut for an error of one line."""
    return text if len(text) <= most else f"{text[:most]}…"


def nearest(word: str, known: list[str] | tuple[str, ...]) -> str:
    """Return the known word nearest to `word`, or ""."""
    import difflib  # only errors use it

    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return close[0] if close else ""


def suggestion(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the hint `did you mean X?`, or another one if no known word is near."""
    near = nearest(word, tuple(known))
    return f"did you mean {near!r}?" if near else otherwise
