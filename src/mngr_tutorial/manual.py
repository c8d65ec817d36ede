"""The texts of `mngr help tutorial` and `mngr tutorial -h`."""

from __future__ import annotations

DESCRIPTION = """\
A tutorial is a shell script that consists of blocks: groups of lines separated by empty lines. \
Each block with a command is cited, word for word, by at least one end-to-end test, in a call of \
write_tutorial_block or in the docstring after `Tutorial block:`.

`check` compares the tutorial and the tests: every block is cited, every citation is in the \
tutorial, no two blocks are the same, and the test that cites a block executed its commands in the \
last run. It prints the file and line of each problem, and exits with 1 if there is one.

`scaffold` adds a simple test for every block without a test: the test cites the block, runs it \
and expects success. The tests of a section are written to a new file, test_<section>.py, or \
test_<section>_2.py if that exists.

`sync` lets an agent write tests for the blocks without a test, and repair tests that cite blocks \
which no longer exist. mngr then checks the agent's commits in a clean checkout: only tests \
changed, each block is cited, the tests pass, and they fail if every command does nothing. Review \
and merge the branch yourself.

`fill` lets an agent propose commands for blocks that contain only comments. Each proposal is run \
in a temporary home and directory; you see its output and keep or drop it. A proposal that you \
keep is written to the tutorial, below its comment. Proposals that fail, and questions the agent \
could not answer, are written to confusing.md: they show where the interface or its manual is \
misleading.

`install-commands` writes the instructions of `sync` as a slash command for Claude Code, \
.claude/commands/sync-tutorial-to-e2e-tests.md. A file that you have edited is not overwritten."""

SCREENS = {
    "check": ("", "compare the tutorial with its tests", ["--tests", "--no-results"]),
    "scaffold": ("", "write a simple test for each block without a test", ["--tests", "--dry-run"]),
    "fill": (
        "",
        "let an agent propose commands for comments",
        (
            "--tests --type --agent-arg --timeout --block-timeout --line --yes-if-passing --dry-run"
        ).split(),
    ),
    "sync": (
        "",
        "let an agent write and repair the tests",
        "--tests --type --agent-arg --timeout --block-timeout --line --dry-run".split(),
    ),
    "install-commands": (
        "",
        "write the instructions of `sync` as a Claude Code command",
        ["--tests", "--user", "--force", "--dry-run"],
    ),
}
"""What `-h` shows about each verb: its arguments, what it does, and its options."""

NOTES = """\
The project is the nearest parent directory with a pyproject.toml or a tutorial.sh. The tutorial \
is the file named by `tutorial` in [tool.mngr_e2e], or tutorial.sh. Citations are read from \
tests/e2e, or from tests. The commands that a test ran are read from .mngr-e2e, from the newest \
result of each test; results older than the test are ignored. A section starts with a comment of \
its own: `## Title`, `# === Title ===` or `# TITLE`.

`sync` and `fill` use the settings of `mngr create`. The agent works in its own worktree. It has \
finished when its program ends or waits for the next prompt. It is then stopped, as at its time \
limit or when you press Ctrl-C. Its proposals and \
commits are run with your permissions: in a separate home and with a small environment, but \
without a sandbox. With --dry-run, the prompt is printed and no agent is started. `fill` moves its \
agent to the trash."""

EXAMPLES = [
    ("check that every block is tested", "mngr tutorial check"),
    ("check before the tests have run", "mngr tutorial check --no-results"),
    ("write the missing tests", "mngr tutorial scaffold"),
    ("let an agent write the missing tests", "mngr tutorial sync --type claude"),
    ("propose commands for comments", "mngr tutorial fill --type claude"),
    ("print the prompt", "mngr tutorial fill --dry-run"),
    ("run without questions", "mngr tutorial fill --type claude --yes-if-passing"),
    ("install the slash command", "mngr tutorial install-commands"),
]
