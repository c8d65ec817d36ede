"""What `mngr tutorial --help` says."""

from __future__ import annotations

DESCRIPTION = """\
A tutorial is a shell script in blocks: runs of lines with an empty line between them. Each block \
that holds a command is cited, word for word, by at least one end-to-end test, in a call of \
write_tutorial_block or in the docstring after `Tutorial block:`.

`check` compares both directions: every block is cited, every citation is in the tutorial, no two \
blocks are the same, and the citing test ran the block's commands when it last ran. It says where \
each difference stands, and exits with 1 if there is one.

`scaffold` adds a plain test for every block that has none: it cites the block, runs it and \
expects success. A test goes to the file that cites most blocks of its section, else to a new \
file named after the section.

`sync` has an agent write good tests for the blocks that have none, and mend those that cite what \
is no longer there. mngr then looks for itself, in a fresh checkout of what the agent committed: \
only tests were changed, each block is cited, the tests pass, and they fail when every command \
does nothing. The branch is left for you to review and merge.

`fill` has an agent propose commands for blocks that are comments only. Each proposal is run in a \
home and a directory of its own, which are then removed; you see what it printed, and keep it or \
drop it. What is kept is written into the tutorial below its comment. Proposals that fail, and \
what the agent could not find out, go to confusing.md: where the interface or its manual misled \
somebody who had read it.

`install-commands` writes the instructions that `sync` gives as a slash command for Claude Code, \
.claude/commands/sync-tutorial-to-e2e-tests.md. A file that was changed since mngr wrote it is \
left as it is."""

SCREENS = {
    "check": ("", "compare the tutorial with its tests", ["--tests", "--no-results"]),
    "scaffold": ("", "write a plain test for each block without one", ["--tests", "--dry-run"]),
    "sync": (
        "",
        "have an agent write and repair the tests",
        "--tests --type --agent-arg --timeout --block-timeout --line --dry-run".split(),
    ),
    "fill": (
        "",
        "have agents propose commands for comments",
        (
            "--type --agent-arg --max-agents --timeout --block-timeout --line --yes-if-passing "
            "--dry-run"
        ).split(),
    ),
    "install-commands": (
        "",
        "write the instructions of `sync` as a Claude Code command",
        ["--user", "--force", "--dry-run"],
    ),
}
"""What `-h` shows about each verb: its arguments, what it does, and its options."""

NOTES = """\
The project is the nearest folder upwards with a pyproject.toml or a tutorial.sh; the tutorial is \
the one that `tutorial` in [tool.mngr_e2e] names, else tutorial.sh. Citations are looked for in \
tests/e2e, else in tests. What tests ran is read from .mngr-e2e, of each test the newest result; \
one from before the test was changed does not count. A section begins with a comment by itself: \
`## Title`, `# === Title ===` or `# TITLE`.

`sync` and `fill` take all settings of `mngr create`. An agent works in a worktree of its own and \
is stopped when it has finished, at the time limit, and when you press Ctrl-C. What it proposes or \
commits is run with your rights: own home, little of your environment, but no sandbox. With \
--dry-run they print the prompt, and no agent is started. `fill` puts its agent into the trash."""

EXAMPLES = [
    ("is every block tested?", "mngr tutorial check"),
    ("the same, before any test has run", "mngr tutorial check --no-results"),
    ("write the tests that are missing", "mngr tutorial scaffold"),
    ("have them written well", "mngr tutorial sync --type claude"),
    ("have commands proposed for the comments that have none", "mngr tutorial fill --type claude"),
    ("see what an agent would be told", "mngr tutorial fill --dry-run"),
    ("for a nightly run", "mngr tutorial fill --type claude --yes-if-passing"),
    ("have /sync-tutorial-to-e2e-tests in Claude Code", "mngr tutorial install-commands"),
]
