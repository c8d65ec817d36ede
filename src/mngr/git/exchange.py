"""git between repositories: mirrors, clones that share their objects, fetching and pushing."""

from __future__ import annotations

import os

from mngr.errors import Refused
from mngr.git.repository import GitError, Repo
from mngr.model.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mngr.git.repository import Runner
    from mngr.git.stranger import Stranger
    from mngr.model.completed import Completed

LONG = 6 * 3600.0
"""Seconds that a transfer may take: a large repository over a slow connection."""

# The user's hooks and prompts must not run while commits are transferred.
QUIET = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.alternateRefsCommand=true"),
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false"),
)
OVER_EXT = ("-c", "protocol.ext.allow=always")
# Keep git-lfs pointers as they are: git-lfs may not be installed on the host, or would ask the
# mirror for the content.
NO_LFS = (
    *("-c", "filter.lfs.smudge=", "-c", "filter.lfs.process="),
    *("-c", "filter.lfs.required=false"),
)

# A clone must never lose an object of the mirror, even if refs are pushed over or pruned by hand: a
# `git push --mirror` could delete the pins, so the objects are declared precious as well. HEAD
# stays unborn, because a clone would otherwise create a local branch of it.
MIRROR = b"""[core]
\trepositoryformatversion = 1
\thooksPath = /dev/null
\tlogAllRefUpdates = false
[extensions]
\tpreciousObjects = true
[gc]
\tauto = 0
\tpruneExpire = never
[maintenance]
\tauto = false
[receive]
\tautogc = false
\tshallowUpdate = true
\tdenyCurrentBranch = ignore
[uploadpack]
\thideRefs = refs/mngr
\tallowAnySHA1InWant = true
[lsrefs]
\tunborn = ignore
"""

# Created under another name and then renamed, so that a mirror is complete or does not exist. `mngr
# gc` removes leftovers of this name.
INIT = r"""
[ ! -d "$1" ] || exit 0
umask 077
mkdir -p "${1%/*}" || exit 1
new=$(mktemp -d "$2/.put.XXXXXX") || exit 1
trap 'rm -rf "$new"' EXIT
trap 'exit 143' HUP INT TERM
git init -q --bare --template= --object-format="$3" "$new" || exit 1
cat >> "$new/config" || exit 1
echo 'ref: refs/heads/never-born' > "$new/HEAD"
[ -d "$1" ] || mv "$new" "$1"
"""


class Bare(Repo):
    """A bare repository with an explicit path, as `safe.bareRepository=explicit` requires."""

    def attempt(self, *args: str, input: bytes | None = None) -> Completed:
        argv = ["git", *self.flags, f"--git-dir={self.path}", *args]
        return self.run(argv, input=input, timeout=self.timeout)


def make_mirror(run: Runner, path: str, home: str, commit: str) -> None:
    """Create an empty mirror with the hash of `commit`; do nothing if it exists."""
    kind = "sha256" if len(commit) == 64 else "sha1"
    script = ["sh", "-c", INIT, "mngr", path, home, kind]
    done = run(script, input=MIRROR, timeout=60)
    done.raise_if_failed(f"the mirror {path} could not be created", GitError)


def has_commit(repo: Repo, commit: str) -> bool:
    return repo.attempt("cat-file", "-e", f"{commit}^{{commit}}").code == 0


class Way(Struct):
    """How git on this machine reaches a repository."""

    url: str
    command: str = ""
    """The shell command that replaces git's own service; SERVICE is replaced by its name."""
    run: Runner | None = None
    """Runs git, and ends it if the other side no longer answers."""

    @property
    def over_ext(self) -> bool:
        return self.url.startswith("ext::")

    def option(self, service: str) -> list[str]:
        """Return the option that replaces the service; `:` takes the path that git appends."""
        if not self.command or self.over_ext:
            return []
        return [f'--{service}=eval "exec $MNGR_SERVICE"; :']

    def serving(self, run: Runner, service: str) -> Runner:
        """Return a Runner with the command in a variable: git shows addresses, which stay short."""
        run, variable = self.run or run, f"MNGR_SERVICE={self.command.replace(SERVICE, service)}"

        def with_service(
            argv: Sequence[str], *, input: bytes | None = None, timeout: float
        ) -> Completed:
            return run(["env", variable, *argv], input=input, timeout=timeout)

        return with_service if self.command else run


SERVICE = "\0"
"""Placeholder of git's service in an argv: no word can contain it, and no quoting changes it."""
BY_VARIABLE = 'ext::sh -c eval% "$MNGR_SERVICE"'


def upload(source: Repo, to: Way, refspecs: Sequence[str]) -> Completed:
    """Push exactly these refspecs, without the user's hooks, signatures or followers."""
    _refuse_rewritten(source, to.url)
    words = ["-q", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no"]
    words += to.option("receive-pack")
    ext = OVER_EXT if to.over_ext else ()
    pusher = source.replace(timeout=LONG, run=to.serving(source.run, "receive-pack"))
    return pusher.attempt(*QUIET, *ext, "push", *words, "--", to.url, *refspecs)


def _refuse_rewritten(repo: Repo, url: str) -> None:
    """Raise if the repository's configuration rewrites the URL, which could run a program."""
    for line in (repo.ask("config", "--get-regexp", REWRITING) or "").splitlines():
        key, _, prefix = line.partition(" ")
        if url.startswith(prefix):
            raise Refused(
                f"{repo.path} rewrites URLs that start with {prefix!r}", f"see `git config {key}`"
            )


REWRITING = r"^url\..*\.(push)?insteadof$"


def fetch(repo: Repo, url: str, refspecs: Sequence[str]) -> Completed:
    """Fetch from a URL that the user named, by any protocol; FETCH_HEAD shows when."""
    return repo.replace(timeout=LONG).attempt(*QUIET, *FETCH, "--", url, *refspecs)


def fetch_theirs(repo: Stranger, way: Way, refspecs: Sequence[str]) -> Completed:
    """Fetch from an agent into refs only: no work tree, HEAD, tag or FETCH_HEAD changes."""
    words = [*FETCH, "--no-write-fetch-head", *way.option("upload-pack")]
    run, kind = way.serving(repo.run, "upload-pack"), "ext" if way.over_ext else "file"
    into = repo.replace(timeout=LONG, run=run, trusted=True, allowed=kind)
    return into.attempt(*words, "--", way.url, *refspecs)


FETCH = ("fetch", "-q", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance")

# Serves an agent's repository; the path that git appends is not used.
SERVE = r"""
odd=$(find -H "$common/refs" "$common/objects" ! -type f ! -type d | head -n 1)
[ -z "$odd" ] || refuse "$odd is not a regular file"
case $1 in
  upload-pack) theirs -c safe.directory='*' upload-pack --strict "$gitdir" ;;
  receive-pack) theirs -c safe.directory='*' receive-pack "$gitdir" ;;
esac
"""


# git does not share the objects of a shallow mirror by itself; it would copy what refs reach.
LEND = r"""
mirror=$1 work=$2 pin=$3 commit=$4 then=$5; shift 5
git --git-dir="$mirror" update-ref "$pin" "$commit" || exit 72
git "$@" -- "$mirror" "$work" || exit 71
if [ -f "$mirror/shallow" ]; then
  cp "$mirror/shallow" "$work/.git/shallow"
  printf '%s\n' "$mirror/objects" > "$work/.git/objects/info/alternates"
fi
eval "$then"
"""
NOT_CLONED, NOT_THERE = 71, 72


class Lent(Struct):
    """A clone without files that shares the mirror's objects and has it as its only remote."""

    mirror: str
    work_dir: str
    commit: str
    pin: str
    """The ref of the mirror that keeps the commit."""
    settings: tuple[tuple[str, str], ...] = ()

    def make(self, run: Runner, then: str = "") -> bool:
        """Create it and run the script `then`; return whether the mirror had the commit."""
        words = [*QUIET, "clone", "-q", "--shared", "--no-checkout", "--origin", "origin"]
        for key, value in self.settings:
            words += ["-c", f"{key}={value}"]
        given = (self.mirror, self.work_dir, self.pin, self.commit, then)
        done = run(["sh", "-c", LEND, "mngr", *given, *words], timeout=LONG)
        if done.code == NOT_CLONED:
            raise GitError(f"{self.mirror} could not be cloned: {done.complaint}")
        if done.code not in (0, NOT_THERE):
            told = f"{self.commit[:12]} could not be checked out in {self.work_dir}"
            raise GitError(f"{told}: {done.complaint}")
        return done.code == 0


def check_out(work: Repo, commit: str, branch: str) -> None:
    """Check out the files of `commit`, on the branch, or detached."""
    done = work.run(checking_out(work, commit, branch), timeout=LONG)
    done.raise_if_failed(f"{commit[:12]} could not be checked out in {work.path}", GitError)


def checking_out(work: Repo, commit: str, branch: str) -> list[str]:
    """Return the check-out command; git may have created a branch of that name in a fresh clone."""
    where = ["--no-track", "-B", branch] if branch else ["--detach"]
    flags = [*work.flags, "-C", work.path, *QUIET, *NO_LFS]
    return ["git", *flags, "checkout", "-q", *where, commit]


def git_settings(repo: Repo) -> list[tuple[str, str]]:
    """Return the settings a clone must share with its source: committer and line endings."""
    names = r"^(user\.(name|email)|core\.(autocrlf|eol|safecrlf))$"
    found: dict[str, str] = {}
    for entry in (repo.ask("config", "-z", "--get-regexp", names) or "").split("\0"):
        key, newline, value = entry.partition("\n")
        if newline:
            found[key] = value
    return list(found.items())


def fast_forward(work: Repo, commit: str) -> Completed:
    """Fast-forward the checked-out branch and its files; git refuses anything else."""
    words = ("merge", "-q", "--ff-only", "--no-autostash", "--no-verify-signatures")
    return work.replace(timeout=LONG).attempt(*QUIET, *NO_LFS, *words, commit)


def count(repo: Repo, commit: str, *without: str) -> int:
    """Return the number of commits of `commit` that none of the others has."""
    return int(repo.line("rev-list", "--count", commit, "--not", *without))


def new_commits(repo: Repo, ref: str, known: str) -> list[str]:
    """Return commits of `ref` that `known` lacks, newest first; all if `known` is missing."""
    done = repo.attempt("rev-list", ref, *(["--not", known] if known else []), "--")
    if done.code and known:
        return new_commits(repo, ref, "")
    return done.stdout.decode().split()


def is_ancestor(repo: Repo, old: str, new: str) -> bool:
    return repo.attempt("merge-base", "--is-ancestor", old, new).code == 0


def anonymous(url: str) -> str:
    """Return the URL without its login, because the agent can read the record of its source."""
    scheme, mark, rest = url.partition("://")
    server, slash, path = rest.partition("/")
    if not mark or scheme not in ("http", "https"):
        return url
    return f"{scheme}://{server.rpartition('@')[2]}{slash}{path}"


def remote_head(run: Runner, url: str) -> tuple[str, str]:
    """Return the branch of a remote repository's HEAD, and its commit; "" if it is empty."""
    words = ["git", "ls-remote", "--symref", "--", url, "HEAD"]
    done = run(["env", "GIT_TERMINAL_PROMPT=0", *words], timeout=120)
    if done.code:
        # After a blank line, git only advises to check rights and existence.
        told = done.stderr.decode("utf-8", "replace").strip().partition("\n\n")[0]
        hint = "" if "/" in url else "a snapshot is written AGENT/SNAPSHOT"
        raise GitError(f"git cannot read {anonymous(url)}: {'; '.join(told.splitlines())}", hint)
    branch = commit = ""
    for line in os.fsdecode(done.stdout).splitlines():
        what, _, name = line.partition("\t")
        if what.startswith("ref: refs/heads/"):
            branch = what.removeprefix("ref: refs/heads/")
        elif name == "HEAD":
            commit = what
    return branch, commit


def lay_over(work: Repo, commit: str) -> None:
    """Write the files of `commit` without changing HEAD and index."""
    work.git(*QUIET, *NO_LFS, "read-tree", "--reset", "-u", commit)
    work.git("read-tree", "HEAD")


def gitlinks(repo: Repo, commit: str) -> dict[str, str]:
    """Return path and commit of every submodule of a commit."""
    found = {}
    for entry in os.fsdecode(repo.git("ls-tree", "-r", "-z", "--full-tree", commit)).split("\0"):
        if entry.startswith("160000 commit "):
            head, _, path = entry.partition("\t")
            found[path] = head.split(" ")[2]
    return found


def own_commits(work: Repo, base: str) -> dict[str, str]:
    """Return commits that neither the clone's base nor its mirror has: hash to summary.

    Snapshots, which are refs of mngr, are not work of the agent.
    """
    log = work.git(
        *("log", "--format=%H %h %s", "-n", "1000", "HEAD"),
        *("--exclude=refs/remotes/*", "--exclude=refs/mngr/*", "--all"),
        *("--not", *([base] if base else []), "--remotes"),
    )
    lines = log.decode("utf-8", "replace").splitlines()
    return {full: text for full, _, text in (line.partition(" ") for line in lines)}


def kept_commits(repo: Repo, commits: Mapping[str, str]) -> set[str]:
    """Return those of `commits` that a ref of this repository reaches."""
    listed = "".join(f"{commit}\n" for commit in commits).encode()
    checked = repo.git("cat-file", "--batch-check=%(objectname) %(objecttype)", input=listed)
    here = [line.split()[0] for line in checked.decode().splitlines() if line.endswith(" commit")]
    if not here:
        return set()
    loose = repo.git("rev-list", *here, "--not", "--glob=refs/*").decode().split()
    return set(here) - set(loose)
