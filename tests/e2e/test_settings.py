"""The tutorial: Settings."""

from __future__ import annotations

from mngr_e2e import E2eSession, expect
from tests.e2e.world import given, host_dir, names, show, state


def test_config_list_says_where_from(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list every setting, and where its value comes from
    mngr config list --origin
    """)
    result = e2e.run(
        "mngr config list --origin", comment="list every setting, and where its value comes from"
    )
    expect(result).to_succeed()
    expect(result.stdout).to_match("^trash.keep +14d +default$")
    again = e2e.run("mngr config list --origin", env={"MNGR__TRASH__KEEP": "1d"})
    expect(again.stdout).to_match("^trash.keep +1d +MNGR__TRASH__KEEP$")


def test_a_setting_can_be_changed_and_unset(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print one, change it, and reset it to the default
    mngr config get trash.keep
    mngr config set trash.keep 30d
    mngr config unset trash.keep
    """)
    first = e2e.run(
        "mngr config get trash.keep", comment="print one, change it, and reset it to the default"
    )
    expect(first).to_succeed()
    expect(e2e.run("mngr config set trash.keep 30d")).to_succeed()
    expect(e2e.run("mngr config unset trash.keep")).to_succeed()
    expect(first.stdout).to_equal("14d\n")
    expect(host_dir(e2e) / "settings.toml").not_to_contain("30d")
    expect(e2e.run("mngr config get trash.keep").stdout).to_equal("14d\n")


def test_a_setting_can_hold_for_one_command(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # set it for one command only, with a variable or with -S
    MNGR__TRASH__KEEP=1d mngr config get trash.keep
    mngr -S trash.keep=2h config get trash.keep
    """)
    first = e2e.run(
        "MNGR__TRASH__KEEP=1d mngr config get trash.keep",
        comment="set it for one command only, with a variable or with -S",
    )
    expect(first).to_succeed()
    second = e2e.run("mngr -S trash.keep=2h config get trash.keep")
    expect(second).to_succeed()
    expect(first.stdout).to_equal("1d\n")
    expect(second.stdout).to_equal("2h\n")
    expect(e2e.run("mngr config get trash.keep").stdout).to_equal("14d\n")


def test_an_unknown_setting_is_an_error(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # a setting that does not exist is an error
    mngr config set trash.kep 1d || echo "exit code $?"
    """)
    result = e2e.run(
        'mngr config set trash.kep 1d || echo "exit code $?"',
        comment="a setting that does not exist is an error",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("exit code 2\n")
    expect(result.stderr).to_contain("did you mean 'trash.keep'?")
    expect(host_dir(e2e) / "settings.toml").not_to_exist()


def test_a_misspelt_setting_is_a_warning(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # an unknown setting in a file or variable is only a warning; doctor lists them
    MNGR__TRASH__KEP=1d mngr list
    MNGR__TRASH__KEP=1d mngr doctor || echo "exit code $?"
    """)
    first = e2e.run(
        "MNGR__TRASH__KEP=1d mngr list",
        comment="an unknown setting in a file or variable is only a warning; doctor lists them",
    )
    expect(first).to_succeed()
    expect(first.stderr).to_equal(
        "mngr: unknown setting 'trash.kep' in MNGR__TRASH__KEP; did you mean 'trash.keep'?\n"
    )
    second = e2e.run('MNGR__TRASH__KEP=1d mngr doctor || echo "exit code $?"')
    expect(second.stdout).to_contain("exit code 1")
    expect(second.stdout).to_match(r"^settings +problem +unknown setting 'trash.kep'")


def test_settings_of_a_project_are_in_its_folder(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # settings of this project: once it has a directory .mngr, config set writes there
    mkdir .mngr
    mngr config set trash.keep 30d
    mngr create keeper -- sleep 1000
    """)
    first = e2e.run(
        "mkdir .mngr",
        comment="settings of this project: once it has a directory .mngr, config set writes there",
    )
    expect(first).to_succeed()
    written = e2e.run("mngr config set trash.keep 30d")
    expect(written).to_succeed()
    path = e2e.work.resolve() / ".mngr" / "settings.toml"
    expect(written.stdout + written.stderr).to_contain(f"Set trash.keep in {path}")
    expect(e2e.run("mngr create keeper -- sleep 1000", comment="not dirty")).to_succeed()
    (e2e.work / ".mngr" / "notes").write_text("mine\n")
    refused = e2e.run("mngr create other -- sleep 1000", comment="but this is work")
    expect(refused).to_fail()
    expect(refused.stderr).to_contain(".mngr/notes")


def test_headless_is_a_setting(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # never prompt, as with --headless: in this shell, or permanently
    export MNGR_HEADLESS=1
    mngr config set headless true
    """)
    result = e2e.run(
        "mngr config set headless true",
        comment="never prompt, as with --headless: in this shell, or permanently",
    )
    expect(result).to_succeed()
    expect(e2e.run("mngr config unset headless")).to_succeed()
    given(e2e, "calm", command="cat")
    asks = e2e.run("mngr connect", comment="it would ask which one", pty=True, stdin="\n")
    expect(asks).to_fail()
    expect(asks.stdout).to_contain("Which one?")
    for env, command in (({"MNGR_HEADLESS": "1"}, ""), ({}, "mngr config set headless true; ")):
        told = e2e.run(f"{command}mngr connect", pty=True, env=env)
        expect(told).to_fail()
        expect(told.stdout).to_contain("no agent given")


def test_an_option_can_have_a_default(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # give an option a default: from now on, create does not attach
    mngr config set commands.create.connect false
    """)
    result = e2e.run(
        "mngr config set commands.create.connect false",
        comment="give an option a default: from now on, create does not attach",
    )
    expect(result).to_succeed()
    expect(result.stdout + result.stderr).to_contain("Set commands.create.connect")
    made = e2e.run("mngr create calm -- sleep 1000", comment="on a terminal", pty=True)
    expect(made).to_succeed()
    expect(state(e2e, "calm")).to_equal("RUNNING")


def test_config_path_names_the_files(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print the paths of the settings files: user, project and local
    mngr config path --scope user
    mngr config path --scope project
    mngr config path --scope local
    """)
    first = e2e.run(
        "mngr config path --scope user",
        comment="print the paths of the settings files: user, project and local",
    )
    expect(first).to_succeed()
    second = e2e.run("mngr config path --scope project")
    expect(second).to_succeed()
    third = e2e.run("mngr config path --scope local")
    expect(third).to_succeed()
    project = e2e.work.resolve() / ".mngr"
    expect(first.stdout).to_equal(f"{host_dir(e2e)}/settings.toml\n")
    expect(second.stdout).to_equal(f"{project}/settings.toml\n")
    expect(third.stdout).to_equal(f"{project}/settings.local.toml\n")


def test_edited_settings_are_checked(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # open your settings in an editor; they are checked when you close it
    EDITOR=true mngr config edit
    """)
    result = e2e.run(
        "EDITOR=true mngr config edit",
        comment="open your settings in an editor; they are checked when you close it",
    )
    expect(result).to_succeed()
    expect(result.stdout + result.stderr).to_contain("settings.toml")
    bad = e2e.run("EDITOR='sh -c \"echo oops >> \\$1\" --' mngr config edit", comment="a slip")
    expect(bad).to_fail()


def test_a_template_is_a_set_of_options(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # a template is a set of options for create
    mngr config set create_templates.review.branch ':review/*'
    mngr config set create_templates.review.label '["role=review"]'
    mngr create check --template review -- true
    """)
    expect(
        e2e.run(
            "mngr config set create_templates.review.branch ':review/*'",
            comment="a template is a set of options for create",
        )
    ).to_succeed()
    expect(
        e2e.run("mngr config set create_templates.review.label '[\"role=review\"]'")
    ).to_succeed()
    third = e2e.run("mngr create check --template review -- true")
    expect(third).to_succeed()
    made = show(e2e, "check")
    assert made["initial_branch"] == "review/check"
    assert made["labels"] == {"role": "review"}
    expect(third.stdout).to_contain("Created check; it is ")


def test_an_agent_type_is_a_program_with_a_name(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # an agent type is a program with a name; derive one from another
    mngr config set agent_types.napper.command 'sleep 1000'
    mngr create nap napper
    """)
    expect(
        e2e.run(
            "mngr config set agent_types.napper.command 'sleep 1000'",
            comment="an agent type is a program with a name; derive one from another",
        )
    ).to_succeed()
    second = e2e.run("mngr create nap napper")
    expect(second).to_succeed()
    expect(second.stdout).to_contain("Created nap; it is RUNNING")
    expect(show(e2e, "nap")).to_include_json({"state": "RUNNING", "command": "sleep 1000"})
    unknown = e2e.run("mngr create nap2 nappr", comment="a type that does not exist")
    expect(unknown).to_have_exit_code(2)
    assert names(e2e) == ["nap"]
