"""The words of `mngr tmr --help`."""

from __future__ import annotations

DESCRIPTION = """\
Collects the tests of a project, runs each a few times, gives one agent to every test that was \
selected, verifies in clean checkouts what the agents claim, and ends with one linear branch, \
tmr/NAME: first one commit with all changes of tests and documents, then the repairs of the \
implementation, best first, each with its reason and its evidence. Every commit passes all tests \
that passed before.

`run` begins a run, or goes on with the one of that name. `resume` goes on with an interrupted \
one. `integrate` builds the branch again, for instance after you helped an agent. `list`, `show`, \
`watch` and `report` look at runs; `pause`, `retune` and `cancel` steer one that is at work. \
Without a name they mean the newest run."""

NOTES = """\
Nothing is launched before you have seen a forecast and agreed; --yes agrees, and without a \
terminal it is needed. Agents work in clones of their own and never see credentials for pushing. \
What they publish is not believed: it is run again by bare agents.

A project says under [tool.mngr_tmr] in pyproject.toml what is implementation (globs), which \
paths are forbidden, how a fresh checkout is set up and how pytest is run."""

EXAMPLES = [
    ("see what it would do", "mngr tmr run --dry-run"),
    ("repair what fails, four agents at a time", "mngr tmr run --only failing --max-agents 4"),
    ("one folder, with limits", "mngr tmr tests/e2e --max-cost 20 --agent-max-tokens 200000"),
    ("go on with an interrupted run", "mngr tmr resume"),
    ("look at it while it goes on", "mngr tmr watch"),
    ("slow down", "mngr tmr retune --max-agents 2"),
    ("give it more", "mngr tmr retune --max-cost 40 --max-time 3h"),
    ("the pages", "mngr tmr report --out /tmp/report"),
]

EXIT_STATUS = [
    ("0", "the branch is there, or nothing needed to change"),
    ("1", "everything failed, or it was cancelled"),
]
