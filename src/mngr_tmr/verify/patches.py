"""The changes in an agent's commits, split by path into new commits."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mngr.api import Repo
from mngr.model.completed import Completed

PLAINLY = ("--no-ext-diff", "--no-textconv")
"""Options that keep programs of the user from running on what an agent committed."""
PLAIN = ("100644", "100755")
GONE = "000000"
ABSENT = "0" * 40


@dataclass(frozen=True)
class Change:
    """One path that differs between two commits."""

    path: str
    new_mode: str
    new_blob: str


def changes(repo: Repo, base: str, head: str) -> list[Change]:
    if base == head:
        return []  # as for most agents whose test passed
    raw = os.fsdecode(repo.git("diff-tree", "-r", "-z", "--no-renames", base, head))
    parts = iter(raw.split("\0"))
    found = []
    for about in parts:
        if about.startswith(":"):
            _, new_mode, _, new_blob, _ = about[1:].split(" ")
            found.append(Change(next(parts), new_mode, new_blob))
    return found


def odd(change: Change) -> bool:
    """Return whether this adds or changes a link or a submodule, which a fix never requires."""
    return change.new_mode not in (*PLAIN, GONE)


def size(repo: Repo, base: str, head: str) -> tuple[int, int]:
    """Return the numbers of changed lines and files."""
    lines = files = 0
    for entry in repo.line("diff-tree", "-r", "--numstat", "--no-renames", base, head).split("\n"):
        added, _, rest = entry.partition("\t")
        removed, _, _ = rest.partition("\t")
        files += 1 if entry else 0
        lines += sum(int(each) for each in (added, removed) if each.isdigit())
    return lines, files


def only(
    repo: Repo, scratch: Path, base: str, head: str, keep: Callable[[str], bool], message: str
) -> str:
    """Return a commit on `base` with the changes of base..head whose path is kept, or ""."""
    lines = [
        f"{each.new_mode} {ABSENT if each.new_mode == GONE else each.new_blob}\t{each.path}\0"
        for each in changes(repo, base, head)
        if keep(each.path)
    ]
    if not lines:
        return ""
    with _index(repo, scratch, base) as indexed:
        given = os.fsencode("".join(lines))
        indexed.git("update-index", "-z", "--index-info", input=given)
        return commit(repo, indexed.line("write-tree"), [base], message)


@contextmanager
def _index(repo: Repo, scratch: Path, tree: str) -> Iterator[Repo]:
    """Yield the repository with a temporary index of this tree."""
    index = scratch / f"index.{os.getpid()}.{os.urandom(4).hex()}"

    def run(argv: Sequence[str], *, input: bytes | None = None, timeout: float) -> Completed:
        words = ["env", f"GIT_INDEX_FILE={index}", *argv]
        return repo.run(words, input=input, timeout=timeout)

    indexed = repo.replace(run=run)
    try:
        indexed.git("read-tree", tree)
        yield indexed
    finally:
        index.unlink(missing_ok=True)


def picked(repo: Repo, scratch: Path, onto: str, base: str, part: str) -> str | list[str]:
    """Return the tree of `onto` with the change base..part, or the paths that conflict."""
    patch = repo.git(
        "diff-tree", *PLAINLY, "-p", "--binary", "--full-index", "--no-renames", base, part
    )
    with _index(repo, scratch, onto) as indexed:
        if patch:
            words = ("apply", "--cached", "--3way", "--whitespace=nowarn", "-")
            done = indexed.attempt(*words, input=patch)
            if done.code:
                return _in_conflict(indexed) or [done.complaint]
        return indexed.line("write-tree")


def _in_conflict(repo: Repo) -> list[str]:
    listed = os.fsdecode(repo.git("ls-files", "--unmerged", "-z")).split("\0")
    return sorted({entry.partition("\t")[2] for entry in listed if entry})


def commit(repo: Repo, tree: str, parents: Sequence[str], message: str) -> str:
    """Make a commit with a fixed author and without a signature, and return its id."""
    words = [word for parent in parents for word in ("-p", parent)]
    who = ("-c", "user.name=mngr tmr", "-c", "user.email=tmr@localhost")
    told = message.encode("utf-8", "replace")
    done = repo.git(*who, "commit-tree", tree, *words, "-F", "-", input=told)
    return done.decode().strip()


def patch_id(repo: Repo, base: str, head: str) -> str:
    """Return an id that is the same for the same change at any place in its file."""
    patch = repo.git("diff-tree", *PLAINLY, "-p", "--no-renames", base, head)
    return repo.git("patch-id", "--stable", input=patch).decode().split(" ")[0]


def show(repo: Repo, commit: str, path: str) -> str | None:
    """Return the text of a file in a commit, or None if there is none."""
    done = repo.attempt("cat-file", "blob", f"{commit}:{path}")
    return None if done.code else done.stdout.decode("utf-8", "replace")


@dataclass(frozen=True)
class Hunk:
    """Lines of a file that a change replaces; either side may be empty."""

    path: str
    start: int
    """The first removed line, or the line before the added ones."""
    removed: list[str]
    at: int
    """The first added line."""
    added: list[str]


HUNK = re.compile(r"^@@ -(\d+)\S* \+(\d+)", re.MULTILINE)


def hunks(repo: Repo, base: str, head: str) -> Iterator[Hunk]:
    for each in changes(repo, base, head):
        words = ("diff-tree", "-p", "-U0", "--no-renames", "--no-prefix", base, head)
        text = repo.git(*words, "--", each.path).decode("utf-8", "replace")
        found = iter(HUNK.split(text)[1:])
        for start, at, body in zip(found, found, found, strict=True):
            lines = body.split("\n")[1:]
            removed, added = ([line[1:] for line in lines if line[:1] == mark] for mark in "-+")
            yield Hunk(each.path, int(start), removed, int(at), added)
