"""How a run is to be done, as `run` was told and as `retune` changes it."""

from __future__ import annotations

from dataclasses import dataclass, field

from mngr.struct import Json
from mngr_tmr.codec import from_json, to_json


@dataclass(frozen=True)
class Budget:
    """Limits; None is none. Of a run, and of each agent."""

    cost: float | None = None
    tokens: int | None = None
    minutes: float | None = None
    agents: int | None = None


@dataclass(frozen=True)
class Options:
    """How a run is to be done. `retune` changes some of these while it goes on."""

    agent_type: str = ""
    agent_args: tuple[str, ...] = ()
    agent_env: tuple[tuple[str, str], ...] = ()
    provider: str = ""
    agents_per_host: int = 4
    """Where the provider makes hosts."""
    build: tuple[tuple[str, str], ...] = ()
    start_args: tuple[str, ...] = ()
    max_agents: int = 4
    stagger: float = 0.0
    """Seconds between two launches."""
    repeats: int = 2
    """How often baseline and verification run a test."""
    retries: int = 1
    """Further tries after an infrastructure failure."""
    only: str = "all"
    sample: int = 0
    """So many tests more than selected, chosen by `seed`."""
    seed: int = 0
    agent_timeout: float = 1800.0
    idle: float = 60.0
    """Seconds an agent may wait without an outcome before it is reminded, and then given up."""
    agent_budget: Budget = field(default_factory=Budget)
    run_budget: Budget = field(default_factory=Budget)
    canaries: int = 3
    """How many tests of a cluster may get an agent, one after the other, before it is given up."""
    coverage: bool = True
    """Measure in the first baseline run which lines each test runs."""
    rounds: int = 3
    """How often tests that still fail at the tip of the branch get another agent."""
    include_flagged: bool = False
    """Put changes that are held for review on the branch, after all others."""
    alert_after: int = 5
    on_alert: str = ""
    pytest_args: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    workers: int = 2
    """Bare agents for baseline, verification and gates."""


def retuned(options: Options, changes: Json) -> Options:
    """With some changed, of budgets also single limits. A ValueError tells what does not fit."""
    if not isinstance(changes, dict):
        raise ValueError("not an object")
    told = to_json(options)
    assert isinstance(told, dict)
    for name, value in changes.items():
        before = told.get(name)
        both = isinstance(before, dict) and isinstance(value, dict)
        told[name] = {**before, **value} if both else value  # type: ignore[dict-item]
    return from_json(Options, told)
