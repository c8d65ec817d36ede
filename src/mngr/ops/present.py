"""A work tree as it stands, as a git tree.

Made with an index of our own, a copy of the agent's: stat data is reused, so only what changed is
read, and the agent's index, files and times stay as they are.
"""

from __future__ import annotations

import os

from mngr import git
from mngr.errors import MngrError, Refused
from mngr.git import GitError, Repo
from mngr.records import agent_dir
from mngr.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import TypeVar

    from mngr.hosts.base import Host
    from mngr.records import AgentRecord

    S = TypeVar("S")
    T = TypeVar("T")

GITLINK = "160000"
FORCED = "--literal-pathspecs add -f --pathspec-from-file=- --pathspec-file-nul".split()


class Standing(Struct):
    """Where a work directory stands in its repository."""

    repo: Repo
    common_dir: str
    index: str
    head: str
    """The commit, or nothing where there is none yet."""
    branch: str


def standing(host: Host, record: AgentRecord) -> Standing:
    """An agent's work directory, if it is the top of a git work tree; else an error says why."""
    repo = Repo(run=host.run, path=record.work_dir)
    done = repo.attempt(
        *("rev-parse", "--show-prefix", "--path-format=absolute", "--git-common-dir"),
        *("--git-path", "index", "HEAD", "--symbolic-full-name", "HEAD"),
    )
    lines = os.fsdecode(done.stdout).split("\n")
    # A prefix means that some directory above is a repository, which knows nothing of this one.
    if len(lines) < 4 or lines[0]:
        raise _no_repository(host, record)
    commits = [line for line in lines[3:] if len(line) in (40, 64) and "/" not in line]
    branches = [line for line in lines[3:] if line.startswith("refs/heads/")]
    return Standing(
        repo=repo,
        common_dir=lines[1],
        index=lines[2],
        head=commits[0] if commits else "",
        branch=branches[0].removeprefix("refs/heads/") if branches else "",
    )


def _no_repository(host: Host, record: AgentRecord) -> MngrError:
    if host.run(["test", "-d", record.work_dir], timeout=30).code:
        return MngrError(f"the work directory of {record.name} is gone: {record.work_dir}")
    return MngrError(
        f"{record.name} does not work in a git repository of its own: {record.work_dir}",
        "this needs one",
    )


class PrivateIndex:
    """`with PrivateIndex(host, record, standing) as repo:` git there sees a copy of the index."""

    def __init__(self, host: Host, record: AgentRecord, at: Standing) -> None:
        self._host, self._at = host, at
        # Where `gc` looks for what interrupted writes leave behind.
        folder = agent_dir(host.home, record.id)
        self._path = os.path.join(folder, f".index.{os.urandom(6).hex()}")

    def __enter__(self) -> Repo:
        # -p: git takes an entry as old as the index itself for doubtful and looks at the file. A
        # copy with a younger time would hide a change made in that very moment.
        done = self._host.run(["cp", "-p", self._at.index, self._path], timeout=60)
        if done.code and self._host.run(["test", "-e", self._at.index], timeout=60).code == 0:
            raise MngrError(f"the index could not be copied: {done.complaint}")
        return git.with_index(self._at.repo, self._path)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        from threading import Thread

        Thread(target=self._remove).start()  # nobody needs to wait for that

    def _remove(self) -> None:
        try:
            self._host.run(["rm", "-f", self._path, f"{self._path}.lock"], timeout=60)
        except MngrError:
            pass  # the host fell silent: `gc` will find it


def whole_tree(at: Standing, index: Repo, extra: bytes = b"") -> str:
    """Everything that is not ignored, and `extra` even so; what git cannot hold is refused."""
    try:
        index.git("add", "-A")
        if extra:
            index.git(*FORCED, input=extra)
    except GitError as error:
        # write-tree would go on with what was there before, and look like a success.
        raise _refusal(error) from None
    tree, links = side_by_side(lambda: _write(index), lambda: gitlinks(index))
    for path in links:
        _refuse_unsaved(at.repo, path)
    return tree


def _write(index: Repo) -> str:
    """Without looking for each blob: `add` has just written those that were missing."""
    return index.line("write-tree", "--missing-ok")


def side_by_side(first: Callable[[], T], second: Callable[[], S]) -> tuple[T, S]:
    """Both answers, for the time of one: git leaves a core idle, and a far host waits for us."""
    from threading import Thread

    answers: list[S] = []
    errors: list[MngrError] = []

    def run() -> None:
        try:
            answers.append(second())
        except MngrError as error:
            errors.append(error)

    thread = Thread(target=run)
    thread.start()
    try:
        answer = first()
    finally:
        thread.join()
    for error in errors:
        raise error
    return answer, answers[0]


def _refusal(error: GitError) -> MngrError:
    mark = " does not have a commit checked out"
    if mark not in error.message:
        return error
    path = error.message.split(mark)[0].rpartition("error: ")[2].strip("'/")
    return _nested(path)


def _nested(path: str) -> Refused:
    return Refused(
        f"{path} is a repository of its own, which git cannot save as part of another",
        "move it away, or name it in .gitignore",
    )


def gitlinks(index: Repo) -> dict[str, str]:
    """Paths that are repositories of their own, with their commits."""
    staged = os.fsdecode(index.git("ls-files", "--stage", "-z")).split("\0")
    entries = [entry.partition("\t") for entry in staged if entry.startswith(GITLINK)]
    return {path: about.split()[1] for about, _, path in entries}


def _refuse_unsaved(repo: Repo, path: str) -> None:
    """A submodule is saved by its commit alone, so it must have nothing beyond that."""
    modules = os.path.join(repo.path, ".gitmodules")
    listed = repo.ask("config", "-f", modules, "-z", "--get-regexp", r"\.path$") or ""
    if path not in [entry.partition("\n")[2] for entry in listed.split("\0")]:
        raise _nested(path)
    inside = Repo(run=repo.run, path=os.path.join(repo.path, path))
    if inside.ask("rev-parse", "--show-prefix") != "":
        return  # not checked out
    if git.count_changes(inside):
        raise Refused(f"the submodule {path} has uncommitted changes", "commit them there first")


def visible_tree(index: Repo) -> tuple[str, str]:
    """As `whole_tree`, for looking only: what git cannot hold is left out, with a complaint."""
    done = index.attempt("add", "-A", "--ignore-errors")
    complaints = done.stderr.decode("utf-8", "replace").splitlines()
    causes = [line.removeprefix("error: ") for line in complaints if line.startswith("error: ")]
    return _write(index), "; ".join(causes[:1]) if done.code else ""


def ignored(at: Standing) -> list[str]:
    """What a snapshot leaves out; a directory of nothing else counts once."""
    options = ("--others", "--ignored", "--exclude-standard", "--directory", "-z")
    found: list[str] = []
    for path in os.fsdecode(at.repo.git("ls-files", *options)).split("\0")[:-1]:
        # git lists an ignored repository and the directory that holds nothing else.
        if not (found and found[-1].endswith("/") and path.startswith(found[-1])):
            found.append(path)
    return found
