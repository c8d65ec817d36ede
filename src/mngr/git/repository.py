"""git in a repository of the user.

It runs where `run` does; porcelain output is read with -z.
"""

from __future__ import annotations

import os

from mngr.errors import MngrError
from mngr.model.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from mngr.model.completed import Completed

    class Runner(Protocol):
        def __call__(
            self, argv: Sequence[str], *, input: bytes | None = None, timeout: float
        ) -> Completed: ...


TIMEOUT = 120.0

# The user's hooks and fsmonitor do not run for mngr's own git calls.
UNHEARD = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "log.showSignature=false", "-c", "protocol.ext.allow=never"),
    *("-c", "submodule.recurse=false"),
)


class GitError(MngrError):
    """git failed."""


class StatusLine(Struct):
    """One line of `git status`."""

    code: str
    path: str

    def __str__(self) -> str:
        return f"{self.code} {self.path}"


def complaint(done: Completed) -> str:
    """Return the first error, which is the cause (a full disk); the last line is its effect."""
    lines = done.stderr.decode("utf-8", "replace").splitlines()
    causes = [line.strip() for line in lines if line.startswith("error: ")]
    return "; ".join([*causes[:1], done.complaint]) if causes else done.complaint


class Repo(Struct):
    """A directory inside a repository, and the function that runs git there."""

    run: Runner
    path: str
    timeout: float = TIMEOUT
    flags: tuple[str, ...] = UNHEARD

    def git(self, *args: str, input: bytes | None = None) -> bytes:
        """Return stdout, or raise GitError with git's own error."""
        done = self.attempt(*args, input=input)
        if done.code:
            verb = next((word for word in args if word[0] != "-" and "=" not in word), "")
            raise GitError(f"git {verb} failed in {self.path}: {complaint(done)}")
        return done.stdout

    def attempt(self, *args: str, input: bytes | None = None) -> Completed:
        words = ["git", *self.flags, "-C", self.path, *args]
        return self.run(words, input=input, timeout=self.timeout)

    def where(self) -> Completed:
        """Return top level, common directory, commit and branch, as far as they exist.

        It succeeds if the commit has submodules.
        """
        return self.attempt(
            *("rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir"),
            *("HEAD", "--symbolic-full-name", "HEAD", "HEAD:.gitmodules"),
        )

    def status(self, *options: str) -> Completed:
        return self.attempt("status", "--porcelain=v1", "-z", *options)

    def line(self, *args: str) -> str:
        return os.fsdecode(self.git(*args)).removesuffix("\n")

    def ask(self, *args: str) -> str | None:
        """Return the answer, or None if git has none."""
        done = self.attempt(*args)
        return None if done.code else os.fsdecode(done.stdout).removesuffix("\n")


class Checkout(Struct):
    """The position of a directory in its repository."""

    top: str
    common_dir: str
    head: str
    """The commit, or nothing where there is none yet."""
    branch: str
    """The branch's short name, or nothing when HEAD is detached."""
    modules: bool = True
    """Whether the commit may have submodules."""


def checkout(repo: Repo) -> Checkout | None:
    """Return the checkout, None outside a work tree; one call, because every create makes it."""
    done = repo.where()
    found = read_checkout(done.stdout)
    if found is None:
        _raise_if_refused(repo, done)
        return None
    return found.replace(modules=done.code == 0)


def read_checkout(answer: bytes) -> Checkout | None:
    """Return the checkout that `where` printed; None if it printed none."""
    lines = os.fsdecode(answer).rstrip("\n").split("\n")
    if len(lines) < 2:
        return None
    top, common = lines[:2]
    head = branch = ""
    for extra in lines[2:]:
        if extra.startswith("refs/heads/"):
            branch = extra.removeprefix("refs/heads/")
        elif len(extra) in (40, 64) and "/" not in extra:
            head = extra
    return Checkout(top=top, common_dir=common, head=head, branch=branch)


def _raise_if_refused(repo: Repo, done: Completed) -> None:
    """Raise if git refuses the repository because it belongs to another user.

    With `safe.directory=*` git accepts it, which distinguishes this case without parsing messages.
    """
    if repo.attempt("-c", "safe.directory=*", "rev-parse", "--show-toplevel").code == 0:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = told[0].removeprefix("fatal: ") if told else "it does not say why"
        raise GitError(f"git refuses {repo.path}: {why}", told[-1].strip() if told[1:] else "")


def changes(repo: Repo, *, ignored: bool = False) -> list[StatusLine]:
    """Return what differs from HEAD, including untracked files and both names of a rename."""
    options = ["--ignored=matching"] if ignored else []
    done = repo.status("--untracked-files=all", *options)
    if done.code:
        raise GitError(f"git status failed in {repo.path}: {complaint(done)}")
    parts = iter(os.fsdecode(done.stdout).split("\0"))
    found = []
    for entry in parts:
        if entry:
            code, path = entry[:2], entry[3:]
            found.append(StatusLine(code=code, path=path))
            if "R" in code or "C" in code:
                found.append(StatusLine(code="D " if "R" in code else "  ", path=next(parts)))
    # git and the script for submodules may both list a submodule.
    return list({str(each): each for each in found if each.code != "  "}.values())


def uncommitted(repo: Repo) -> list[StatusLine]:
    """Return what differs from HEAD, without the settings files that mngr itself writes."""
    own = tuple(f"/.mngr/{name}" for name in ("settings.toml", "settings.local.toml", ".gitignore"))
    return [change for change in changes(repo) if not f"/{change.path}".endswith(own)]


def branch_exists(repo: Repo, branch: str) -> bool:
    return repo.ask("rev-parse", "--verify", "-q", f"refs/heads/{branch}") is not None


def commit_of(repo: Repo, name: str) -> str | None:
    return repo.ask("rev-parse", "--verify", "-q", "--end-of-options", f"{name}^{{commit}}")


def valid_branch(repo: Repo, branch: str) -> bool:
    """Return whether the name is valid; git is asked only about unusual names."""
    words = branch.replace("-", "_").split("/")
    plain = branch.isascii() and all(map(str.isidentifier, words))
    if plain and branch != "HEAD" and not branch.startswith("-"):
        return True
    return repo.attempt("check-ref-format", "--branch", branch).code == 0


# `git worktree add` takes four processes of git for this. As there, `locked` is written first, so
# that no `git worktree prune` removes a worktree that is being made. On a full disk git fails after
# it has created the branch.
WORKTREE = r"""
common=$1 work=$2 commit=$3 made=$4 admin=$1/worktrees/${2##*/}; shift 4; unset CDPATH
[ ! -e "$admin" ] && [ ! -e "$work" ] && mkdir -p "$admin" "$work" || exit 1
echo 'added by mngr' > "$admin/locked" && cd -P -- "$work" &&
  printf '%s\n' "$PWD/.git" > "$admin/gitdir" && echo ../.. > "$admin/commondir" &&
  printf '%s\n' "$commit" > "$admin/HEAD" && printf 'gitdir: %s\n' "$admin" > .git &&
  git "$@" && exit 0
code=$?
read -r head < "$admin/HEAD"
[ "$head" != "ref: $made" ] || git --git-dir="$common" update-ref -d "$made" "$commit"
cd / && rm -rf -- "$admin" "$work"
exit "$code"
"""


def add_worktree(
    repo: Repo, common: str, path: str, branch: str, commit: str, *, new: bool
) -> Completed:
    """Add a worktree, locked so that `git worktree prune` does not remove it.

    A new branch begins at `commit`; the call fails if the branch exists.
    """
    ref = f"refs/heads/{branch}"
    if _is_plain(common):
        where = ["--no-track", "-b", branch] if new else [branch, "--"]
        given = [common, path, commit, ref if new else "", *repo.flags]
        script = ["sh", "-c", WORKTREE, "mngr", *given, "checkout", "-q", "-f", *where]
        return repo.run(script, timeout=repo.timeout)
    if new and (made := repo.attempt("update-ref", ref, commit, "0" * len(commit))).code:
        return made
    done = repo.attempt("worktree", "add", "-q", "--lock", path, branch)
    if done.code and new:
        repo.attempt("update-ref", "-d", ref, commit)
    return done


def _is_plain(common: str) -> bool:
    """Return whether a worktree of this repository is made of the well-known files.

    With extensions it may require more, such as a copy of the settings of a sparse checkout.
    """
    try:
        with open(os.path.join(common, "config"), "rb") as file:
            text = file.read().lower()
    except OSError:
        return False
    return b"extensions" not in text and b"sharedrepository" not in text


def worktree_of_branch(repo: Repo, branch: str) -> str | None:
    """Return the worktree that has `branch` checked out."""
    path = ""
    for line in os.fsdecode(repo.git("worktree", "list", "--porcelain", "-z")).split("\0"):
        if line.startswith("worktree "):
            path = line.removeprefix("worktree ")
        elif line == f"branch refs/heads/{branch}":
            return path
    return None


def unreachable_commits(repo: Repo, commit: str, *, without: str = "") -> list[str]:
    """Return one-line summaries of commits that no ref but `without` keeps.

    Not `--all`, which includes the HEAD of every worktree, and so everything checked out. mngr's
    own refs are removed with the agent.
    """
    excluded = [f"--exclude={without}"] if without else []
    log = repo.git(
        *("log", "--format=%h %s", "-n", "100", commit),
        *("--not", *excluded, "--exclude=refs/mngr/*", "--glob=refs/*"),
    )
    return log.decode("utf-8", "replace").splitlines()


def commit_tree(repo: Repo, tree: str, parent: str, message: str) -> str:
    """Create a commit in mngr's own name, which the configuration of every door sets."""
    parents = ["-p", parent] if parent else []
    made = repo.git("commit-tree", "--no-gpg-sign", tree, *parents, input=os.fsencode(message))
    return made.decode().strip()


def count_changes(repo: Repo) -> int | None:
    """Return how many files differ from HEAD."""
    done = repo.status("--untracked-files=all", "--no-renames")
    return None if done.code else len(set(done.stdout.split(b"\0")) - {b""})
