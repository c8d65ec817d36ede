"""Changes that are refused for what they are, before anything runs."""

from __future__ import annotations

from pathlib import PurePosixPath

from mngr.api import Repo
from mngr_tmr.run.settings import Project
from mngr_tmr.verify import guarded_files, patches
from mngr_tmr.verify.cases import Refusal

SIZE_LIMIT = 1 << 20
PROGRAMS = frozenset(
    ("sh", "bash", "dash", "env", "git", "python", "python3", "pytest", "timeout", "tmux")
)


def refuse_strange(repo: Repo, project: Project, base: str, head: str) -> None:
    if not patches.descends(repo, base, head):
        raise Refusal("its commits do not build on the commit it was given")
    found = patches.changes(repo, base, head)
    forbidden = [each.path for each in found if project.is_forbidden(each.path)]
    if forbidden:
        raise Refusal(f"changes forbidden paths: {', '.join(forbidden[:5])}")
    for each in found:
        old, new = (patches.show(repo, commit, each.path) for commit in (base, head))
        why = guarded_files.changed_judge(each.path, old, new)
        if why:
            raise Refusal(why)
        if old is None and PurePosixPath(each.path).name in PROGRAMS:
            raise Refusal(f"replaces a program: {each.path}")
    odd = [each.path for each in found if patches.odd(each)]
    if odd:
        raise Refusal(f"adds links or submodules: {', '.join(odd[:5])}")
    for each in found:
        if each.new_mode != patches.GONE and _size(repo, each.new_blob) > SIZE_LIMIT:
            raise Refusal(f"adds a file larger than 1 MiB: {each.path}")


def _size(repo: Repo, blob: str) -> int:
    return int(repo.line("cat-file", "-s", blob))
