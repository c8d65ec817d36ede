"""The tutorial: A hundred agents, one branch."""

from __future__ import annotations

from mngr_e2e import E2eSession, expect

PROJECT = r"""mkdir -p ~/shop/tests
printf '%s\n' 'def total(prices):' '    amount = 0' '    for price in prices:' \
  '        amount -= price' '    return amount' > ~/shop/shop.py
printf '%s\n' 'from shop import total' '' 'def test_total():' \
  '    assert total([2, 3]) == 5' > ~/shop/tests/test_shop.py
(cd ~/shop && git init -q -b main && git add -A)
(cd ~/shop && git config user.name Me && git config user.email me@example.com)
(cd ~/shop && git commit -qm 'Open the shop')"""


def test_a_project_with_a_bug_and_a_test_that_found_it(e2e: E2eSession) -> None:
    e2e.write_tutorial_block(r"""
    # create a project with a bug, and a test that fails because of it
    mkdir -p ~/shop/tests
    printf '%s\n' 'def total(prices):' '    amount = 0' '    for price in prices:' \
      '        amount -= price' '    return amount' > ~/shop/shop.py
    printf '%s\n' 'from shop import total' '' 'def test_total():' \
      '    assert total([2, 3]) == 5' > ~/shop/tests/test_shop.py
    (cd ~/shop && git init -q -b main && git add -A)
    (cd ~/shop && git config user.name Me && git config user.email me@example.com)
    (cd ~/shop && git commit -qm 'Open the shop')
    """)
    expect(e2e.run(PROJECT, comment="a project with a bug, and a test")).to_succeed()
    found = e2e.run("cd ~/shop && git show --stat --format=%s", comment="what is in it")
    expect(found.stdout).to_contain("Open the shop")
    expect(found.stdout).to_contain("tests/test_shop.py")


def test_a_dry_run_shows_what_it_would_launch(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list the agents that a run would start; this runs the tests, and starts none
    (cd ~/shop && mngr tmr run --type mechanic --only failing --dry-run)
    """)
    e2e.run(PROJECT)
    told = e2e.run(
        "(cd ~/shop && mngr tmr run --type mechanic --only failing --dry-run)",
        comment="which agents would a run launch there?",
    )
    expect(told).to_succeed()
    expect(told.stdout).to_contain(
        "Would start 1 agent of type mechanic:\n  fix  tests/test_shop.py::test_total\n"
    )
    expect(told.stdout).to_match(r"Branch: tmr/failing-[0-9a-f]{4}\n$")
    expect(told.stderr).to_match(r"failing-[0-9a-f]{4}: waiting for confirmation\n")
    expect(e2e.run("mngr list", comment="nobody is there").stdout).to_equal("No agents found\n")
    expect(e2e.run("mngr tmr list").stdout).to_equal("No runs found\n")


def test_the_failing_test_gets_an_agent_and_the_repair_a_commit(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # start one agent per failing test (mechanic requires no account), and build one branch
    (cd ~/shop && mngr tmr run --name shop --type mechanic --only failing --yes)
    mngr tmr show shop
    git -C ~/shop log --oneline main..tmr/shop
    mngr tmr report shop --out ~/report
    """)
    e2e.run(PROJECT)
    run = e2e.run(
        "(cd ~/shop && mngr tmr run --name shop --type mechanic --only failing --yes)",
        comment="one agent for each failing test",
        timeout=300,
    )
    expect(run).to_succeed()
    expect(run.stdout).to_contain("The run shop is done.")
    shown = e2e.run("mngr tmr show shop", comment="how did each test end?")
    expect(shown.stdout).to_match(r"\AThe run shop is done \(1 fixed\)\.\n")
    expect(shown.stdout).to_match(r"\nfixed\s+tests/test_shop.py::test_total\s+Fix shop\.py:4 ")
    expect(run.stdout).to_contain("To merge it: git merge tmr/shop\n")
    expect(run.stderr).not_to_contain('{"')
    log = e2e.run("git -C ~/shop log --oneline main..tmr/shop", comment="the branch")
    expect(log.stdout).to_have_line_count(1)
    body = e2e.run("git -C ~/shop log -1 --format=%B tmr/shop", comment="the evidence, in words")
    expect(body.stdout).to_contain("- before the fix: failed (exit code 1)\n")
    expect(body.stdout).to_match(r"\n- with its fix, .*: passed\n")
    patch = e2e.run("git -C ~/shop diff main tmr/shop", comment="the repair itself")
    expect(patch.stdout).to_contain("+        amount += price")
    report = e2e.run("mngr tmr report shop --out ~/report", comment="the report")
    expect(report.stdout).to_equal(f"{e2e.home}/report/index.html\n")
    expect(e2e.home / "report" / "index.html").to_exist()
    names = e2e.run("mngr list --format '{name}'", comment="nobody is left running")
    expect(names.stdout).to_be_empty()
    e2e.write_tutorial_block("""
    # list the runs
    mngr tmr list --format '{run} {status}'
    """)
    runs = e2e.run("mngr tmr list --format '{run} {status}'", comment="list the runs")
    expect(runs.stdout).to_equal("shop done\n")


def test_a_run_that_is_not_there_is_named(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list the runs
    mngr tmr list --format '{run} {status}'
    """)
    listed = e2e.run("mngr tmr list --format '{run} {status}'", comment="list the runs")
    expect(listed).to_succeed()
    expect(listed.stdout).to_be_empty()
    shown = e2e.run("mngr tmr show shop", comment="one that never was")
    expect(shown).to_have_exit_code(4)
    expect(shown.stderr).to_contain("no run 'shop'")


def test_the_demo_explains_itself(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # read about the demo, which does the same on a larger example in a minute or two
    mngr help demo
    """)
    told = e2e.run("mngr help demo", comment="see the whole of it on a larger example")
    expect(told).to_succeed()
    expect(told.stdout).to_contain("three bugs")
