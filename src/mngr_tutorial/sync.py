"""`mngr tutorial sync`: an agent writes the missing tests, and mngr verifies them."""

from __future__ import annotations

from mngr.api import Mngr
from mngr.cli.app.output import Row, one, say, warn
from mngr.cli.app.parser import Namespace
from mngr.errors import BadRecord, MngrError, UsageError
from mngr.model.struct import Json
from mngr_outcome.codec import to_json
from mngr_outcome.outcome import BYTES_LIMIT, FILE, Published, parse_outcome
from mngr_tutorial import jobs, prompts
from mngr_tutorial.checking import CheckResult, check, show_problems
from mngr_tutorial.jobs import Errand, Job
from mngr_tutorial.project import Project
from mngr_tutorial.verifying import SyncTask, Verification, verify

STALE = ("unknown", "unreadable")
REMINDER = (
    "You have not published an outcome yet. Commit your work and run "
    '"$MNGR_AGENT_STATE_DIR/publish". If it is incomplete, report why with --blocked.'
)


def run(args: Namespace, project: Project) -> int:
    wanted = targets(check(project), args.line)
    if not wanted.blocks and not wanted.stale:
        every = "Every block has a test."
        say(args, "No block at these lines requires a test." if args.line else every)
        return 0
    prompt = render(project, wanted)
    if args.dry_run:
        lines: list[Json] = [block.line for block in wanted.blocks]
        one(args, {"blocks": lines, "prompt": prompt}, prompt.rstrip("\n"))
        return 0
    if not (project.top / ".git").exists():
        raise UsageError(f"{project.root} is not in a git repository", "`sync` creates a branch")
    return _carry_out(args, project, wanted, prompt)


def targets(report: CheckResult, lines: list[int]) -> SyncTask:
    """Return blocks without a test or not run by it, and tests that cite a missing block."""
    untested = {each.block for each in report.problems if each.kind in ("uncovered", "not_run")}
    blocks = [block for block in report.blocks if block.line in untested]
    if lines:
        return SyncTask([block for block in blocks if any(map(block.has_line, lines))], [])
    return SyncTask(blocks, [problem for problem in report.problems if problem.kind in STALE])


def render(project: Project, wanted: SyncTask) -> str:
    told = []
    if wanted.blocks:
        told += ["These blocks have no test:", prompts.quoted(wanted.blocks)]
    if wanted.stale:
        lines = [f"- {each}" for each in wanted.stale]
        told += ["These tests require changes:", "\n".join(lines)]
    tutorial, tests = project.named(project.tutorial), prompts.test_places(project)
    instructions = prompts.sync_instructions(tutorial, tests, "\n\n".join(told))
    return prompts.load("sync").render(project=project.inside, instructions=instructions)


def _carry_out(args: Namespace, project: Project, wanted: SyncTask, prompt: str) -> int:
    api = Mngr(args.config, args.registry)
    request = jobs.asked(args, api, project.root, prompt, prompts.load("sync").version)
    errand = Errand(FILE, BYTES_LIMIT, REMINDER)
    job = jobs.carry_out(args, api, request, errand)
    outcome = _outcome(args, job, errand)
    head = _head(api, job, outcome)
    say(args, f"Checking the commits of {job.name}.")
    found = verify(project, wanted, job.agent.record.base_commit, head, args.block_timeout)
    return _report(args, job, outcome, head, found)


def _outcome(args: Namespace, job: Job, errand: Errand) -> Published | None:
    """Return the outcome; None if there is none, although the commits may still be good."""
    try:
        outcome = parse_outcome(job.data) if job.data is not None else None
    except BadRecord as error:
        warn(str(error))
        return None
    if outcome is None:
        warn(jobs.why_nothing(job, errand))
    elif outcome.blocked:
        say(args, f"{job.name} was blocked: {outcome.blocked.reason}")
    return outcome


def _head(api: Mngr, job: Job, outcome: Published | None) -> str:
    """Return the tip of the agent's branch, fetched to this machine if it works elsewhere."""
    record = job.agent.record
    if record.transfer != "git-worktree":
        api.pull(job.agent)
    words = ["git", "rev-parse", "--verify", f"refs/heads/{record.branch}^{{commit}}"]
    tip = api.exec(job.agent, words, timeout=60).stdout.decode("utf-8", "replace").strip()
    if not tip or tip == record.base_commit:
        raise MngrError(f"{job.name} committed nothing", f"see `mngr capture {job.name}`")
    if outcome is not None and outcome.head != tip:
        warn(f"{job.name} published {outcome.head[:12]}, but its branch is at {tip[:12]}")
    return tip


def _report(
    args: Namespace, job: Job, outcome: Published | None, head: str, found: Verification
) -> int:
    name = job.name
    told: Row = {
        "agent": name,
        "branch": job.agent.record.branch,
        "head": head,
        "wanted": found.wanted,
        "verified": found.verified,
        "tests": [*found.tests],
        "confusing": to_json(outcome.confusing if outcome else ()),
    }
    show_problems(args, found.problems, told)
    bad = found.wanted - found.verified
    if not bad:
        how = f"Review it with `mngr diff {name}`, merge it with `mngr merge {name}`."
        say(args, f"All verified. {how}")
        return 0
    warn(f"{bad} of {found.wanted} blocks or tests did not pass; review with `mngr diff {name}`")
    return 3 if found.verified else 1
