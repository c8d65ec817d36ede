"""Token budgets of a run are written as those of an agent."""

from __future__ import annotations

from mngr.cli.app.main import make_parser
from mngr.plugins.registry import own_registry


def test_token_budgets_may_be_in_thousands_and_millions() -> None:
    parser = make_parser(own_registry(), "tmr")
    args = parser.parse("run --max-tokens 20000000 --agent-max-tokens 500k".split())
    assert (args.max_tokens, args.agent_max_tokens) == (20_000_000, 500_000)
