"""git in a directory that an agent can write to, without the configuration found there.

git uses the agent's own git directory for HEAD and index. In place of the common directory it gets
a door: a directory created for the call, with links to refs and logs and with mngr's configuration.
"""

from __future__ import annotations

import os

from mngr.errors import Refused
from mngr.git.repository import Repo
from mngr.git.stranger_scripts import DOOR, NESTED, REFUSED, VISIT
from mngr.model.completed import Completed

# Print what git.checkout expects, with the common directory spelled as git does.
WHERE = r"""
printf '%s\n%s\n' "$top" "$(physical "$common")"
theirs rev-parse HEAD --symbolic-full-name HEAD HEAD:.gitmodules 2>/dev/null
"""
STATUS = (
    NESTED
    + r"""
theirs status --porcelain=v1 -z --ignore-submodules=dirty "$@" && changed_links
"""
)


class Stranger(Repo):
    """An agent's directory, and the function that runs git there without its configuration."""

    home: str
    """The directory on that host in which doors are created."""
    kind: str
    """How the directory was made: a transfer, `nested` or `bare`."""
    source: str = ""
    """The repository of a worktree, or the work tree around a nested repository."""
    trusted: bool = False
    """Whether it is the user's: git keeps the environment, and may use `allowed` transports."""
    allowed: str = "none"
    index: str = ""
    """The index file that git uses instead of the agent's."""
    writes: bool = False
    """Whether files are written; a filter that only that repository defines is then an error."""

    def attempt(self, *args: str, input: bytes | None = None) -> Completed:
        return self.visit('theirs "$@"', *args, input=input)

    def where(self) -> Completed:
        return self.visit(WHERE)

    def status(self, *options: str) -> Completed:
        return self.visit(STATUS, *options)

    def argv(self, script: str, *words: str) -> list[str]:
        """Return the command that runs `script` behind the door; in it, `theirs` is git."""
        bare, writes = "" if self.trusted else "-i", "yes" if self.writes else ""
        known = [self.home, self.path, self.kind, self.source]
        given = [bare, self.allowed, self.index, writes]
        return ["sh", "-c", DOOR + VISIT + script, "mngr", *known, *given, *words]

    def visit(self, script: str, *words: str, input: bytes | None = None) -> Completed:
        done = self.run(self.argv(script, *words), input=input, timeout=self.timeout)
        if done.code == REFUSED:
            raise Refused(f"git was not run in {self.path}: {done.complaint}")
        if done.code and b"external filter 'false' failed" in done.stderr:
            _refuse_filter(self.path, done.stderr.decode("utf-8", "replace"))
        return done

    def inside(self, path: str) -> Stranger:
        """Return a repository in a subdirectory of this one."""
        return self.replace(path=os.path.join(self.path, path), kind="nested", source=self.path)


def _refuse_filter(place: str, told: str) -> None:
    import re

    if found := re.search(r"fatal: (.*): (?:clean|smudge) filter '(.*)' failed", told):
        path, name = found.groups()
        raise Refused(
            f"git was not run in {place}: {path} requires the filter {name!r}, which only that "
            "repository defines",
            f"to trust it, define filter.{name} in your global git configuration",
        )
