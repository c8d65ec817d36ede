"""Tokens and cost: by agent, by label, in total, in lists, and until a condition holds."""

from __future__ import annotations

from tests.support.cli import Cli
from tests.support.scribe import scribe

NONE = ("--transfer", "none")


def spend(cli: Cli, name: str, model: str, *numbers: int) -> None:
    """So much more, as if the agent had used it."""
    line = " ".join([model, *map(str, numbers)])
    folder = cli.state_dir(name) / "talk"
    folder.mkdir(exist_ok=True)
    with (folder / "spent.txt").open("a") as file:
        file.write(f"{line}\n")


def test_what_was_used_adds_up_by_agent_by_label_and_in_total(mngr: Cli) -> None:
    scribe(mngr, "a", *NONE, "--label", "ticket=1")
    scribe(mngr, "b", *NONE, "--label", "ticket=1")
    mngr.create("plain", *NONE)
    spend(mngr, "a", "claude-opus-4-6", 1_000_000, 100_000, 10_000_000, 200_000)
    spend(mngr, "a", "claude-opus-4-6-20260101", 1, 0, 0, 0)
    spend(mngr, "b", "us.anthropic.claude-haiku-4-5-v1:0", 1_000_000, 0, 0, 0)
    done = mngr("usage", "--format", "json").ok()
    assert done.err == ""
    found, total = done.json()["usage"], done.json()["total"]
    assert [(row["name"], row["tokens"], row["cost"]) for row in found] == [
        ("a", 11_300_001, 13.750005),  # 5 + 2.5 + 5 + 1.25
        ("b", 1_000_000, 1.0),
    ]
    assert found[0]["models"]["claude-opus-4-6"]["cache_read"] == 10_000_000
    assert (total["agents"], total["input"], total["cost"]) == (2, 2_000_001, 14.750005)
    (row,) = mngr("usage", "--by", "label:ticket", "--format", "json").ok().json()["usage"]
    assert (row["label"], row["agents"], row["cost"]) == ("1", 2, 14.750005)
    human = [line.split() for line in mngr("usage").ok().out.splitlines()]
    assert (human[0][:2], human[-1][:2]) == (["NAME", "TOKENS"], ["total", "12300001"])
    assert mngr("usage", "b", "--format", "{name} {cost}").ok().out == "b 1.0\n"
    named = mngr("usage", "plain").ok()
    assert (named.out, "plain does not report" in named.err) == ("No usage found\n", True)
    listed = mngr(
        "list", "--fields", "name,tokens,cost,idle", "--sort", "-cost", "--format", "json"
    )
    rows = listed.ok().json()["agents"]
    assert [(r["name"], r["tokens"], r["cost"]) for r in rows] == [
        ("a", 11_300_001, 13.750005),
        ("b", 1_000_000, 1.0),
        ("plain", None, None),
    ]
    assert all(isinstance(row["idle"], int) for row in rows)
    assert mngr("list", "--include", "cost > 10", "--format", "{name}").ok().out == "a\n"
    assert mngr("list", "--format", "{name} {usage.input}").ok().out.startswith("a 1000001\n")
    assert mngr("list", "--format", "json").ok().json()["agents"][0]["usage"] is None


def test_prices_are_settings_and_an_unknown_model_has_no_cost(local: Cli) -> None:
    scribe(local, "a", *NONE)
    spend(local, "a", "own-model-7b", 1_000_000, 1_000_000, 1_000_000, 0)
    done = local("usage", "--format", "json").ok()
    assert done.json()["usage"][0]["cost"] is None
    assert (done.json()["total"]["cost"], done.json()["total"]["unpriced"]) == (
        0.0,
        ["own-model-7b"],
    )
    assert "no price is known for the model 'own-model-7b'; set prices.own-model-7b.in" in done.err
    local("config", "set", "prices.own-model.input", "1.5").ok()
    assert local("usage", "--format", "json").ok().json()["usage"][0]["cost"] is None
    local("config", "set", "prices.own-model.output", "2").ok()
    assert local("usage", "--format", "{cost}").ok().out == "5.0\n"
    nearer = ["-S", 'prices."own-model-7b".input=0', "-S", 'prices."own-model-7b".output=1']
    assert local("usage", "--format", "{cost}", *nearer).ok().out == "1.0\n"
    for bad in ("-1", "true", '"free"'):
        local("usage", "-S", f"prices.x.input={bad}").fails(2, "a number of dollars")
    local("usage", "-S", "prices.x.inputs=1").fails(2, "prices.x.inputs", "prices.x.input")


def test_waiting_until_enough_is_spent(local: Cli) -> None:
    scribe(local, "a", *NONE)
    waiting = local.start("usage", "a", "--wait", "--until", "tokens >= 1000", "--format", "json")
    spend(local, "a", "gpt-5", 400, 0, 0, 0)
    local("usage", "a", "--wait", "--until", "tokens >= 1000", "--timeout", "0.1s").fails(124)
    assert waiting.poll() is None
    spend(local, "a", "gpt-5", 0, 600, 0, 0)
    out, err = waiting.communicate(timeout=30)
    assert (waiting.returncode, err) == (0, b"")
    assert b'"tokens": 1000' in out
    local("stop", "a").ok()
    late = local("usage", "a", "--wait", "--until", "cost > 5")
    late.fails(1, "all agents have ended", "cost > 5")


def test_wrong_input(local: Cli) -> None:
    local("usage", "--by", "ticket").fails(2, "--by", "label:KEY")
    local("usage", "--wait").fails(2, "--until")
    local("usage", "--until", "cost > 1").fails(2, "--wait")
    local("usage", "--timeout", "1s").fails(2, "--wait")
    local("usage", "--wait", "--until", "costs > 1").fails(2, "costs", "cost")
    local("usage", "nosuch").fails(4, "nosuch")
    assert local("usage").ok().out == "No usage found\n"
