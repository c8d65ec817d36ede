"""Compare `snapshot create` of 10,000 files with `git add -A` and a temporary index."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks.measure import Row, interleaved, ratio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from benchmarks.run import Bench

IDENTITY = ["-c", "user.name=b", "-c", "user.email=b@example.com"]


def rows(bench: Bench) -> list[Row]:
    work = _agent(bench)
    fresh = _measured(bench, work)
    # git reads files again that it checked out in the second in which it wrote the index. The
    # first `git status` there ends this.
    bench.run(["git", "status", "--short"], cwd=work)
    used = _measured(bench, work)
    return [
        ratio("snapshot create / git add -A, 10,000 files", *used, 1.5),
        ratio("the same in the second after the checkout", *fresh, 3),
    ]


def _measured(bench: Bench, work: str) -> tuple[float, float]:
    raw, ours = interleaved(
        max(5, bench.rounds // 2),
        lambda: _add(bench, work),
        lambda: bench.mngr("snapshot", "create", "snapped"),
    )
    return ours, raw


def _agent(bench: Bench) -> str:
    """Create an agent with 10,000 files, some of them changed or new; return its work directory."""
    source = bench.base / "many"
    for folder in range(100):
        (source / f"d{folder}").mkdir(parents=True)
        for file in range(100):
            (source / f"d{folder}" / f"f{file}.txt").write_text(f"{folder} {file}\n" * 40)
    bench.run(["git", "init", "-q"], cwd=str(source))
    bench.run(["git", "add", "-A"], cwd=str(source))
    bench.run(["git", *IDENTITY, "commit", "-qm", "files"], cwd=str(source))
    bench.mngr("create", "snapped", "--no-connect", "--from", str(source), "--", "sleep", "10000")
    listed = subprocess.run(
        ["git", "worktree", "list", "--porcelain"], cwd=source, capture_output=True, check=True
    )
    work = listed.stdout.decode().split("worktree ")[2].splitlines()[0]
    for number in range(100):
        Path(work, f"d{number}", "f0.txt").write_text("changed\n" * 40)
        Path(work, f"d{number}", "new.txt").write_text(f"new {number}\n")
    return work


def _add(bench: Bench, work: str) -> float:
    index = str(bench.base / "temporary-index")
    Path(index).unlink(missing_ok=True)
    return bench.run(["env", f"GIT_INDEX_FILE={index}", "git", "add", "-A"], cwd=work)
