"""The tour of dotenv."""

from __future__ import annotations

from mngr_e2e import E2eSession, expect


def given(e2e: E2eSession, text: str = "COLOUR='green'\n") -> None:
    (e2e.work / ".env").write_text(text)


def test_set(e2e: E2eSession) -> None:
    """A setting is written to a file that was not there.

    Tutorial block:
        # keep a setting in .env
        dotenv set COLOUR green

    Scope: one setting, no options.
    """
    expect(e2e.run("dotenv set COLOUR green").stdout).to_equal("COLOUR=green\n")
    expect(e2e.work / ".env").to_have_content("COLOUR='green'\n")


def test_get(e2e: E2eSession) -> None:
    """
    Tutorial block:
        # ask for one
        dotenv get COLOUR
    """
    given(e2e)
    expect(e2e.run("dotenv get COLOUR").stdout).to_equal("green\n")


def test_list(e2e: E2eSession) -> None:
    """
    Tutorial block:
        # all of them
        dotenv list
    """
    given(e2e, "B=2\n# not this one\nexport A=1\n")
    expect(e2e.run("dotenv list").stdout).to_equal("A=1\nB=2\n")


def test_list_as_json(e2e: E2eSession) -> None:
    """
    Tutorial block:
        # all of them, for a program
        dotenv list --format=json
    """
    given(e2e, "A=1\nB='two words'\n")
    expect(e2e.run("dotenv list --format=json").stdout).to_be_json().to_equal(
        {"A": "1", "B": "two words"}
    )


def test_unset(e2e: E2eSession) -> None:
    """
    Tutorial block:
        # forget one
        dotenv unset COLOUR
    """
    given(e2e, "A=1\nCOLOUR=green\n")
    expect(e2e.run("dotenv unset COLOUR")).to_succeed()
    expect(e2e.work / ".env").to_have_content("A=1\n")


def test_run(e2e: E2eSession) -> None:
    """
    Tutorial block:
        # start a program that sees them
        dotenv run -- sh -c 'echo "the sky is $COLOUR"'
    """
    given(e2e)
    result = e2e.run("""dotenv run -- sh -c 'echo "the sky is $COLOUR"'""")
    expect(result.stdout).to_equal("the sky is green\n")


def test_run_without_override(e2e: E2eSession) -> None:
    """
    Tutorial block:
        # what is set outside may win
        COLOUR=red dotenv run --no-override -- printenv COLOUR
    """
    given(e2e)
    result = e2e.run("COLOUR=red dotenv run --no-override -- printenv COLOUR")
    expect(result.stdout).to_equal("red\n")
    expect(e2e.run("dotenv run -- printenv COLOUR", env={"COLOUR": "red"}).stdout).to_equal(
        "green\n"
    )


def test_another_file(e2e: E2eSession) -> None:
    """
    Tutorial block:
        # another file for another place
        dotenv --file staging.env set COLOUR blue
        dotenv --file staging.env run -- printenv COLOUR
    """
    expect(e2e.run("dotenv --file staging.env set COLOUR blue")).to_succeed()
    expect(e2e.run("dotenv --file staging.env run -- printenv COLOUR").stdout).to_equal("blue\n")
    expect(e2e.work / ".env").not_to_exist()


def test_exit_codes_come_through(e2e: E2eSession) -> None:
    """
    Tutorial block:
        # the program's exit code is ours
        dotenv run -- sh -c 'exit 7' || echo "exit code $?"
    """
    given(e2e)
    result = e2e.run("""dotenv run -- sh -c 'exit 7' || echo "exit code $?\"""")
    expect(result.stdout).to_equal("exit code 7\n")


def test_a_missing_name(e2e: E2eSession) -> None:
    """
    Tutorial block:
        # nothing of that name
        dotenv get NOTHING || echo "exit code $?"
    """
    given(e2e)
    result = e2e.run('dotenv get NOTHING || echo "exit code $?"')
    expect(result.stdout).to_equal("exit code 1\n")
