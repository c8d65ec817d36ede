"""The tutorial: Plugins, completion, manuals."""

from __future__ import annotations

from mngr_e2e import E2eSession, expect
from tests.e2e.world import ended, given, host_dir, names


def test_plugins_can_be_listed(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list the plugins, and what they add
    mngr plugin list
    """)
    result = e2e.run("mngr plugin list", comment="list the plugins, and what they add")
    expect(result).to_succeed()
    expect(result.stdout + result.stderr).not_to_be_empty()
    expect(result.stderr).not_to_contain("cannot be loaded")


def test_a_plugin_is_a_module(e2e: E2eSession) -> None:
    e2e.write_tutorial_block(r"""
    # a plugin is a Python module that adds commands or agent types; name it in the settings
    mkdir -p ~/plugins
    echo 'def register(to): to.agent_type("parrot", "mngr.agents.base:AgentType")' \
      > ~/plugins/parrot.py
    PYTHONPATH=~/plugins mngr -S 'plugins.modules=["parrot"]' plugin list
    """)
    expect(
        e2e.run(
            "mkdir -p ~/plugins",
            comment=(
                "a plugin is a Python module that adds commands or agent types; "
                "name it in the settings"
            ),
        )
    ).to_succeed()
    expect(
        e2e.run(
            'echo \'def register(to): to.agent_type("parrot", '
            '"mngr.agents.base:AgentType")\' > ~/plugins/parrot.py'
        )
    ).to_succeed()
    third = e2e.run("PYTHONPATH=~/plugins mngr -S 'plugins.modules=[\"parrot\"]' plugin list")
    expect(third).to_succeed()
    expect(third.stdout).to_match("^parrot +true +agent type parrot$")


def test_a_plugin_can_be_disabled(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # disable it, and enable it again
    PYTHONPATH=~/plugins mngr -S 'plugins.modules=["parrot"]' plugin disable parrot
    PYTHONPATH=~/plugins mngr -S 'plugins.modules=["parrot"]' plugin enable parrot
    """)
    (e2e.home / "plugins").mkdir()
    (e2e.home / "plugins" / "parrot.py").write_text("def register(registry): ...\n")
    first = e2e.run(
        ("PYTHONPATH=~/plugins mngr -S 'plugins.modules=[\"parrot\"]' plugin disable parrot"),
        comment="disable it, and enable it again",
    )
    expect(first).to_succeed()
    expect(
        e2e.run("PYTHONPATH=~/plugins mngr -S 'plugins.modules=[\"parrot\"]' plugin enable parrot")
    ).to_succeed()
    expect(first.stdout + first.stderr).to_contain("parrot")
    expect(host_dir(e2e) / "settings.toml").not_to_contain("parrot")
    unknown = e2e.run("mngr plugin disable parrot", comment="where nobody knows it")
    expect(unknown).to_have_exit_code(4)


def test_completion_prints_a_script(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # complete commands, options and names in bash, zsh or fish
    mngr completion bash
    """)
    given(e2e, "fix")
    result = e2e.run(
        "mngr completion bash",
        comment=("complete commands, options and names in bash, zsh or fish"),
    )
    expect(result).to_succeed()
    expect(result.stdout).to_contain("complete -")
    expect(e2e.run("mngr completion bash | bash -n")).to_succeed()
    expect(e2e.run("mngr completion tcsh")).to_have_exit_code(2)


def test_man_prints_the_manual(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # read a manual page
    mngr man create
    """)
    result = e2e.run("mngr man create", comment="read a manual page")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("mngr-create - create an agent")


def test_help_prints_names_for_a_script(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print the names of all commands, for a script
    mngr help --format '{name}'
    """)
    result = e2e.run(
        "mngr help --format '{name}'", comment="print the names of all commands, for a script"
    )
    expect(result).to_succeed()
    expect(result.stdout).to_start_with("create\nlist\n")
    expect(result.stdout).to_match("^snapshot$")


def test_doctor_mends_what_can_be_mended(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list problems of this machine, then repair them
    mngr doctor --format '{status} {detail}'
    mngr doctor --fix
    """)
    first = e2e.run(
        "mngr doctor --format '{status} {detail}'",
        comment="list problems of this machine, then repair them",
    )
    expect(first).to_succeed()
    second = e2e.run("mngr doctor --fix")
    expect(second).to_succeed()
    expect(first.stdout).to_match("^ok git version")
    expect(second.stdout).to_match("^records +ok +0 agents")


def test_all_agents_can_be_ended(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # at the end, destroy all agents; their work stays in the trash for two weeks
    mngr list --ids | mngr destroy - --force
    """)
    given(e2e, "fix")
    ended(e2e, "quick")
    result = e2e.run(
        "mngr list --ids | mngr destroy - --force",
        comment=("at the end, destroy all agents; their work stays in the trash for two weeks"),
    )
    expect(result).to_succeed()
    expect(result.stdout + result.stderr).to_contain("Destroyed fix")
    assert names(e2e) == []
    expect(e2e.run("mngr restore quick")).to_succeed()
