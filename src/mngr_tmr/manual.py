"""The words of `mngr tmr --help`."""

from __future__ import annotations

DESCRIPTION = """\
Collects the tests of a project, runs each a few times, gives one agent to every test that was \
selected, verifies in clean checkouts what the agents claim, and ends with one linear branch, \
tmr/NAME: first one commit with all changes of tests and documents, then the repairs of the \
implementation, best first, each with its reason and its evidence. Every commit passes all tests \
that passed before.

`run` begins a run, or continues the one of that name. `resume` continues an interrupted one. \
`integrate` builds the branch again, for instance after you helped an agent; it launches no \
agent. `list`, `show`, `watch` and `report` look at runs; `pause`, `unpause`, `retune` and \
`cancel` steer one that is at work. Without a name they mean the newest run. `rm` moves a run, \
its refs, its branch and its agents into the trash; `rm --undo` brings the run and its refs back, \
`mngr restore` its agents."""

NOTES = """\
Failing tests that probably have one cause form a cluster: those with the same failure, the cases \
of one parametrised test, and tests that run the same suspicious lines. One test of a cluster, its \
canary, gets an agent first; the others get none if they pass with its fix. If the canary brings \
no fix, another test of the cluster is tried, --canaries in all. Tests that still fail on the \
branch get another agent there, up to --rounds rounds; a round without a new commit is the last.

A change with a line that looks like a special case for a test is held for review: it is not on \
the branch, and its test counts as not fixed. `show`, the report and the last words of the run \
name the line and the `git cherry-pick` command that takes the change. --include-flagged, of `run` \
or later of `integrate`, puts such changes at the end of the branch.

Nothing is launched before you have seen a forecast and agreed; --yes agrees, and without a \
terminal it is needed. --dry-run collects and runs the tests, shows which of them would get an \
agent, and launches none. Nothing is left of a run that you decline. Agents work in clones of \
their own and never see credentials for pushing. What they publish is not believed: it is run \
again by bare agents.

A project says under [tool.mngr_tmr] in pyproject.toml what is implementation (globs), which \
paths are forbidden, how a fresh checkout is set up and how pytest is run."""

EXAMPLES = [
    ("see which agents it would launch", "mngr tmr run --only failing --dry-run"),
    ("repair what fails, four agents at a time", "mngr tmr run --only failing --max-agents 4"),
    ("one folder, with limits", "mngr tmr run tests/e2e --max-cost 20 --agent-max-tokens 200000"),
    ("continue an interrupted run", "mngr tmr resume"),
    ("look at it while it runs", "mngr tmr watch"),
    ("slow down", "mngr tmr retune --max-agents 2"),
    ("give it more", "mngr tmr retune --max-cost 40 --max-time 3h"),
    ("take what is held for review", "mngr tmr integrate --include-flagged"),
    ("remove a run", "mngr tmr rm failing-3f2a"),
    ("the pages", "mngr tmr report --out /tmp/report"),
]

EXIT_STATUS = [
    ("0", "the branch is there, or nothing needed to change"),
    ("1", "everything failed, or it was cancelled"),
]
