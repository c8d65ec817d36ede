"""`mngr tutorial fill`: an agent proposes commands for comments; the user keeps or drops them."""

from __future__ import annotations

from dataclasses import dataclass

from mngr.api import Mngr
from mngr.cli.app.output import Row, can_ask, clean, confirm, one, rows, say, warn
from mngr.cli.app.parser import Namespace
from mngr.errors import BadRecord, MngrError
from mngr_e2e.artifacts import write_whole
from mngr_e2e.blocks import Block
from mngr_e2e.expect.matchers import plural
from mngr_outcome.codec import to_json
from mngr_outcome.outcome import Confusing
from mngr_tutorial import comments, confusing, jobs, prompts, proposals, trials
from mngr_tutorial.jobs import Errand, Job
from mngr_tutorial.project import Project
from mngr_tutorial.proposals import Proposal, Proposals
from mngr_tutorial.trials import ProposalResult

FIELDS = ["line", "result", "commands", "comment", "block", "exit_code", "seconds", "output"]
REMINDER = (
    "You have not written $MNGR_AGENT_STATE_DIR/proposals.json yet. Write it now, even if it is "
    "incomplete, and report in `confusing` what prevented you from completing it."
)


@dataclass(frozen=True)
class Judged:
    trial: ProposalResult
    kept: bool

    @property
    def result(self) -> str:
        if self.kept:
            return "kept"
        return "dropped" if self.trial.passed else "failed"


def run(args: Namespace, project: Project) -> int:
    asked = comments.without_commands(project.blocks(), args.line)
    if not asked:
        say(args, "There are no comments without commands.")
    prompt = render(project, asked) if asked else ""
    if args.dry_run or not asked:
        return _preview(args, asked, prompt)
    confusing.refuse_foreign(project.root / confusing.NAME)
    api = Mngr(args.config, args.registry)
    request = jobs.asked(args, api, project.root, prompt, prompts.load("fill").version)
    # The agent sees the tutorial as it is now; its changes are not merged.
    request = request.replace(include_dirty=True)
    errand = Errand(proposals.FILE, proposals.LIMIT, REMINDER)
    job = jobs.carry_out(args, api, request, errand)
    return _judge(args, project, _proposed(api, job, errand, asked))


def render(project: Project, asked: list[Block]) -> str:
    return prompts.load("fill").render(
        tutorial=project.named(project.tutorial),
        project=project.inside,
        blocks=prompts.quoted(asked),
        limit=str(proposals.LIMIT),
        file=proposals.FILE,
    )


def _preview(args: Namespace, asked: list[Block], prompt: str) -> int:
    row: Row = {"blocks": [block.line for block in asked], "prompt": prompt}
    if prompt or args.format != "human":
        one(args, row, prompt.rstrip("\n"))
    return 0


def _proposed(api: Mngr, job: Job, errand: Errand, asked: list[Block]) -> Proposals:
    """Return the agent's proposals; without a valid file, the agent is kept, stopped."""
    try:
        if job.data is None:
            raise BadRecord(jobs.why_nothing(job, errand))
        found = proposals.parse(job.data, asked)
    except BadRecord as error:
        raise MngrError(str(error), f"see `mngr capture {job.name}`") from None
    _put_away(api, job)
    return found


def _put_away(api: Mngr, job: Job) -> None:
    """Move an agent to the trash, and keep its branch if it has commits."""
    commits = api.risk(job.agent, drop_branch=True).commits
    api.destroy(job.agent, drop_branch=not commits)


def _judge(args: Namespace, project: Project, found: Proposals) -> int:
    there = {block.text for block in project.blocks()}
    judged: list[Judged] = []
    try:
        for proposal in found.proposals:
            trial = trials.attempt(project.root, proposal, args.block_timeout)
            _show(args, trial)
            judged.append(Judged(trial, _keep(args, trial) and proposal.text not in there))
    finally:  # accepted proposals are kept, also after Ctrl-C at the next question
        _write(project, [each.trial.proposal for each in judged if each.kept])
    failed = [confusing.of_trial(each.trial) for each in judged if not each.trial.passed]
    spots = [*found.confusing, *failed]
    if confusing.write(project.root / confusing.NAME, spots):
        say(args, f"{confusing.NAME} lists {plural(len(spots), 'confusing spot')}.")
    return _report(args, project, judged, spots)


def _write(project: Project, kept: list[Proposal]) -> None:
    """Write kept proposals to the tutorial, which may have been edited in the meantime."""
    if kept:
        text = project.tutorial.read_text(encoding="utf-8")
        write_whole(project.tutorial.resolve(), comments.filled(text, kept))


def _show(args: Namespace, trial: ProposalResult) -> None:
    proposal = trial.proposal
    setup = f"# setup: {proposal.setup}\n" if proposal.setup else ""
    verdict = "passed" if trial.passed else f"failed with exit code {trial.exit_code}"
    say(args, f"\n{setup}{proposal.text}\n\n{trial.output.rstrip()}\n[{verdict}]")


def _keep(args: Namespace, trial: ProposalResult) -> bool:
    if args.yes_if_passing:
        return trial.passed
    return can_ask(args) and confirm(args, _question(trial), default=trial.passed)


def _question(trial: ProposalResult) -> str:
    first, *more = trial.proposal.commands.split("\n")
    return f"Keep `{first}{' …' if more else ''}`?"


def _report(args: Namespace, project: Project, judged: list[Judged], spots: list[Confusing]) -> int:
    blocks = project.blocks()
    table = [_row(each, blocks) for each in judged]
    if args.format == "json":
        told = to_json(spots)
        one(args, {"proposals": [dict(row) for row in table], "confusing": told}, "")
    else:
        rows(args, table, FIELDS[:3], "proposals", empty="Nothing was proposed", fields=FIELDS)
    if not args.yes_if_passing and not can_ask(args) and judged:
        warn(
            "nothing was kept, because asking requires a terminal; "
            "use --yes-if-passing to keep proposals that pass"
        )
        return 1
    failed = [each for each in judged if not each.trial.passed]
    if len(failed) == len(judged):
        return 1
    return 3 if failed else 0


def _row(each: Judged, blocks: list[Block]) -> Row:
    trial, proposal = each.trial, each.trial.proposal
    return {
        "line": _line(proposal, blocks),
        "result": each.result,
        "commands": proposal.commands,
        "comment": proposal.comment,
        "block": proposal.block,
        "exit_code": trial.exit_code,
        "seconds": trial.seconds,
        "output": clean(trial.output),
    }


def _line(proposal: Proposal, blocks: list[Block]) -> int | None:
    """Return the line of the proposal, or of its comment, which may have commands now."""
    places = [block.line for block in blocks if block.text == proposal.text]
    starts = (proposal.block, f"{proposal.block}\n")
    places += [b.line for b in blocks if b.text == starts[0] or b.text.startswith(starts[1])]
    return places[0] if places else None
