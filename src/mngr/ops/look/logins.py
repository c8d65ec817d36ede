"""Warn about a renewable login shared by several clients: a renewal logs the others out."""

from __future__ import annotations

import os

from mngr.model.events import iso
from mngr.model.state import ALIVE
from mngr.ops.look.listing import agents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mngr.agents.base import Login
    from mngr.ops.look.listing import Agent
    from mngr.ops.world import World

MOST = 3


def remarks(world: World, agent: Agent) -> Iterator[str]:
    """Yield remarks about the login of an agent that was just launched."""
    record = agent.record
    if not record.login:
        return
    others = [
        each.name
        for each in agents(world)
        if each.state in ALIVE and each.id != agent.id and _login(each) == record.login
    ]
    elsewhere = not agent.host.capabilities.shares_files
    if not others and not elsewhere:
        return
    shared = f"with {_listed(others)}" if others else f"with a copy on {agent.host.ref.name}"
    login = world.agent_type(record.type).login(os.environ)
    advice = f"; {login.advice}" if login and login.advice else ""
    yield (
        f"{agent.name} shares the renewable login in {record.login} {shared}: "
        f"renewing it in one place can log the others out{advice}"
    )


def _login(agent: Agent) -> str:
    return agent.evidence.record.login if agent.evidence.record else ""


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more


def described(name: str, login: Login, now: float) -> tuple[str, str, str]:
    """Return status, detail and remedy, as `doctor` shows them."""
    if login.kind == "none":
        return "absent", f"no login for {name} was found", login.advice
    if login.kind == "key":
        return "ok", f"{name} uses the key in {login.place}", ""
    if login.kind == "token":
        if 0 < login.expires < now:
            return "warning", f"the token in {login.place} expired at {_time(login)}", login.advice
        return "ok", f"{name} uses the long-lived token in {login.place}", ""
    told = f"{name} uses the renewable login in {login.place}"
    remedy = f"parallel agents can log each other out: {login.advice}"
    if 0 < login.expires < now:
        told += f", which expired at {_time(login)} and is renewed at its next use"
    return "warning", told, remedy


def _time(login: Login) -> str:
    return iso(login.expires)[:19] + "Z"
