"""Whom `snapshot create` means: it looks at one agent only, and must not look at a wrong one."""

from __future__ import annotations

import pytest

from tests.support.cli import Cli

pytestmark = pytest.mark.dear


def taken(cli: Cli, word: str) -> str:
    """The id of the agent that a snapshot was taken of."""
    (row,) = cli("snapshot", "create", word, "--format", "json").ok().json()["agents"]
    return str(row["agent_id"])


def test_a_name_means_who_has_it_now(mngr: Cli) -> None:
    mngr.create("foo")
    first = mngr.agent("foo")["id"]
    mngr("rename", "foo", "older").ok()
    mngr("snapshot", "create", "foo").fails(4, "no agent 'foo'")
    mngr.create("foo")
    second = mngr.agent("foo")["id"]
    place = "bare.bare" if mngr.provider == "bare" else "localhost.local"
    for word, wanted in [
        ("older", first),
        (first, first),
        ("foo", second),
        (f"foo@{place}", second),
    ]:
        assert taken(mngr, word) == wanted, word
    mngr("snapshot", "create", "foo@nowhere").fails(4, "foo@nowhere")
    mngr("snapshot", "create", "foo:README").fails(2, "names a path")
    mngr("snapshot", "create", "fo o").fails(2, "not an agent name")
    both = mngr("snapshot", "create", "foo", "older", "foo", "--format", "jsonl").ok()
    assert len(both.out.splitlines()) == 2, "each once"

    mngr("destroy", "foo", "--force").ok()
    mngr("snapshot", "create", "foo").fails(4, "no agent 'foo'")
    mngr("restore", "foo").ok()
    assert taken(mngr, "foo") == second


def test_a_lost_claim_does_not_hide_an_agent(local: Cli) -> None:
    local.create("foo")
    for claim in (local.home / "names").iterdir():
        claim.write_text("{")
    assert taken(local, "foo") == local.agent("foo")["id"]
    for claim in (local.home / "names").iterdir():
        claim.unlink()
    assert taken(local, "foo") == local.agent("foo")["id"]


def test_snapshots_of_an_agent_are_completed(local: Cli) -> None:
    local.create("foo")
    local("snapshot", "create", "foo", "--name", "early").ok()
    local("snapshot", "create", "foo").ok()

    def completed(*words: str) -> list[str]:
        out = local("__complete", "--", "snapshot", *words).ok().out
        return [line.partition("\t")[0] for line in out.splitlines()]

    assert sorted(completed("restore", "foo", "")) == ["2", "early"]
    assert completed("destroy", "foo", "ea") == ["early"]
    assert completed("restore", "f") == ["foo"]
