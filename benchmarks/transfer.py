"""Transfers of work: a batch of clones of a mirror, and a pull of one commit."""

from __future__ import annotations

import json
import time
from pathlib import Path

from benchmarks.measure import Row, interleaved, ratio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from benchmarks.run import Bench

FILES = 10_000
IDENTITY = ["-c", "user.name=b", "-c", "user.email=b@example.com"]


def rows(bench: Bench) -> list[Row]:
    repo = make_repository(bench)
    return [batch_of_clones(bench, repo), pull_of_one_commit(bench)]


def make_repository(bench: Bench) -> str:
    repo = bench.base / "ten-thousand"
    bench.run(["git", "init", "-q", str(repo)], cwd="/")
    for number in range(FILES):
        folder = repo / f"d{number % 100}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.txt").write_text(f"line {number}\n" * 20)
    bench.run(["git", "add", "-A"], cwd=str(repo))
    bench.run(["git", *IDENTITY, "commit", "-qm", "files"], cwd=str(repo))
    return str(repo)


def batch_of_clones(bench: Bench, repo: str) -> Row:
    """Compare the time per agent with cloning and checking out one by one."""
    many = 8 if bench.rounds < 21 else 20
    raw_mirror = str(bench.base / "raw.git")
    bench.run(["git", "clone", "-q", "--bare", repo, raw_mirror], cwd="/")
    mirror = ["--transfer", "git-mirror", "--from", repo]
    bench.mngr("create", "first", "--no-connect", *mirror, "--", "true")

    def raw(number: int) -> float:
        path = str(bench.base / f"clone{number}")
        took = bench.run(["git", "clone", "-q", "--shared", "--no-checkout", raw_mirror, path])
        return took + bench.run(["git", "checkout", "-q", "-b", "work"], cwd=path)

    raw_total = sum(raw(number) for number in range(many))
    line = {"args": ["sleep", "10000"], "from": repo, "transfer": "git-mirror"}
    lines = [json.dumps({**line, "name": f"mirror-{n}"}) for n in range(many)]
    path = bench.base / "mirrors.jsonl"
    path.write_text("\n".join(lines))
    ours = bench.mngr("create", "--batch", str(path))
    name = f"git-mirror create, {FILES} files, of {many} / raw"
    return ratio(name, ours / many, raw_total / many, 2)


def pull_of_one_commit(bench: Bench) -> Row:
    bench.mngr("create", "puller", "--no-connect", "--transfer", "git-mirror", "--", "true")
    (work,) = Path(bench.env["MNGR_HOST_DIR"], "worktrees").glob("puller-*")

    def commit() -> None:
        words = ["commit", "-q", "--allow-empty", "-m", f"at {time.time()}"]
        bench.run(["git", *IDENTITY, *words], cwd=str(work))

    def raw() -> float:
        commit()
        return bench.run(["git", "fetch", "-q", str(work), "+mngr/puller:refs/heads/raw-pull"])

    def ours() -> float:
        commit()
        return bench.mngr("pull", "puller")

    bare, fetch, pull = interleaved(bench.rounds, bench.bare, raw, ours)
    return ratio("pull of one commit / interpreter+git fetch", pull, bare + fetch, 3)
