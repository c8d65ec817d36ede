"""The options of a run, as given to `run` and changed by `retune`."""

from __future__ import annotations

from dataclasses import dataclass

from mngr.errors import BadRecord
from mngr.model.struct import Json
from mngr_outcome.codec import from_json, to_json


@dataclass(frozen=True)
class Options:
    """The options of a run, with the names of the command line if the values are the same.

    `retune` changes some of them while it is in progress. None is no limit.
    """

    agent_type: str = ""
    agent_args: tuple[str, ...] = ()
    agent_env: tuple[tuple[str, str], ...] = ()
    provider: str = ""
    agents_per_host: int = 4
    """Agents per host, if the provider creates hosts."""
    build: tuple[tuple[str, str], ...] = ()
    start_args: tuple[str, ...] = ()
    max_agents: int = 4
    stagger: float = 0.0
    """Seconds between two launches."""
    repeats: int = 2
    """Runs per test, in the baseline and in verification."""
    retries: int = 1
    """Further attempts after an infrastructure failure."""
    only: str = "all"
    sample: int = 0
    """Number of additional passing tests, chosen by `seed`."""
    seed: int = 0
    agent_timeout: float = 1800.0
    idle: float = 60.0
    """Seconds an agent may idle before it is reminded, and then stopped."""
    max_cost: float | None = None
    max_tokens: int | None = None
    max_time: float | None = None
    """Seconds."""
    max_launches: int | None = None
    agent_max_cost: float | None = None
    agent_max_tokens: int | None = None
    canaries: int = 3
    """Maximum number of tests of a cluster to try, one after the other."""
    coverage: bool = True
    """Measure in the first baseline run which lines each test runs."""
    rounds: int = 3
    """Maximum number of rounds of agents for tests that still fail on the branch."""
    include_flagged: bool = False
    """Put changes that are held for review on the branch, after all others."""
    alert_after: int = 5
    on_alert: str = ""
    pytest_args: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    workers: int = 2
    """Bare agents for baseline, verification and gates."""


def retuned(options: Options, changes: Json) -> Options:
    """Return the options with changes. Raise BadRecord if they are not valid."""
    told = to_json(options)
    if not isinstance(changes, dict) or not isinstance(told, dict):
        raise BadRecord("the options are not an object")
    return from_json(Options, {**told, **changes})
