"""The texts of `mngr help tmr` and `mngr tmr -h`."""

from __future__ import annotations

DESCRIPTION = """\
Collect the tests of a project, run each test several times, start one agent for every selected \
test, verify the agents' changes in clean checkouts, and build one linear branch, tmr/NAME: first \
one commit with all test and documentation changes, then the implementation fixes, best first, \
each with its reason and evidence. Every commit passes all tests that passed before.

`run` starts a run, or continues the run with that name. `resume` continues an interrupted run. \
`integrate` builds the branch again without starting agents, for example after you helped an \
agent. `list`, `show`, `watch` and `report` show runs; `pause`, `unpause`, `retune` and `cancel` \
control a run in progress. Without a name, they use the newest run. `rm` moves a run, its refs, \
its branch and its agents to the trash; `rm --undo` restores the run and its refs, `mngr restore` \
its agents."""

SCREENS = {
    "run": (
        "[PATH...] [-- PYTEST_ARG...]",
        "run the tests, start agents, verify and build the branch",
        (
            "--only --name --type --provider --max-agents --max-cost --max-time --repeats --yes "
            "--dry-run"
        ).split(),
    ),
    "resume": ("[RUN]", "continue an interrupted run", ["--yes", "--pr"]),
    "integrate": ("[RUN]", "build the branch again, without agents", ["--pr", "--include-flagged"]),
    "list": ("", "list runs", []),
    "show": ("[RUN]", "show the state and the results of a run", []),
    "watch": ("[RUN]", "follow a run until it ends", []),
    "report": ("[RUN]", "write the report pages of a run", ["--out"]),
    "pause": ("[RUN]", "start no new agents until `unpause`", []),
    "unpause": ("[RUN]", "let a paused run start agents again", []),
    "retune": (
        "[RUN]",
        "change the limits of a run that is in progress",
        (
            "--max-agents --max-cost --max-tokens --max-time --max-launches --agent-max-cost "
            "--agent-max-tokens --agent-timeout --stagger --retries --idle --alert-after --on-alert"
        ).split(),
    ),
    "cancel": ("[RUN]", "stop a run and its agents", []),
    "rm": ("RUN", "move a run, its branches and its agents to the trash", ["--undo"]),
}
"""What `-h` shows about each verb: its arguments, what it does, and its options."""

NOTES = """\
Failing tests that probably have the same cause form a cluster: tests with the same failure, the \
cases of one parametrised test, and tests that execute the same suspicious lines. One test of a \
cluster, the canary, gets an agent first; tests that pass with its fix get none. If the canary \
yields no fix, another test of the cluster is tried, up to --canaries tests. Tests that still fail \
on the branch get another agent, up to --rounds rounds; a round without a new commit is the last.

A change with a line that looks like a special case for a test is held for review: it is not on \
the branch, and its test counts as not fixed. `show`, the report and the summary of the run name \
the line and the `git cherry-pick` command that applies the change. With --include-flagged, `run` \
and `integrate` put such changes at the end of the branch.

Before any agent starts, a forecast is shown and you are asked to confirm it. --yes skips the \
question and is required without a terminal. If you decline, the run is removed. --dry-run runs \
the tests and lists the agents that a run would start, without starting them. Agents work in their \
own clones, whose only remote is a mirror. Their claims are not trusted: mngr runs the tests again \
in clean checkouts.

The table [tool.mngr_tmr] in pyproject.toml defines the implementation files (globs), forbidden \
paths, the set-up of a clean checkout, and how pytest is run."""

EXAMPLES = [
    ("list the agents a run would start", "mngr tmr run --only failing --dry-run"),
    ("fix failing tests, 4 agents at a time", "mngr tmr run --only failing --max-agents 4"),
    ("limit tests and cost", "mngr tmr run tests/e2e --max-cost 20"),
    ("continue an interrupted run", "mngr tmr resume"),
    ("follow a run", "mngr tmr watch"),
    ("run fewer agents", "mngr tmr retune --max-agents 2"),
    ("raise the limits", "mngr tmr retune --max-cost 40 --max-time 3h"),
    ("add the changes held for review", "mngr tmr integrate --include-flagged"),
    ("remove a run", "mngr tmr rm failing-3f2a"),
    ("write the report", "mngr tmr report --out /tmp/report"),
]
