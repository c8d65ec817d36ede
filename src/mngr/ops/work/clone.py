"""Clone an agent with its work, or migrate it to another host.

The record of a clone names its original and the work it was made with, before anything else of it
exists. So a repeated `migrate` recognises a finished copy, and never destroys work that is not in
it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from mngr.errors import MngrError, Refused
from mngr.hosts.base import Host
from mngr.model.address import parse_address
from mngr.model.records import AgentRecord
from mngr.model.state import ALIVE
from mngr.ops.keep import trees
from mngr.ops.keep.trees import standing
from mngr.ops.lifecycle import create, destroy, running
from mngr.ops.lifecycle.create import Created
from mngr.ops.lifecycle.request import CreateRequest, place
from mngr.ops.look import event_log
from mngr.ops.look.listing import Agent, agents, refreshed
from mngr.ops.steps import step
from mngr.ops.talk import conversation
from mngr.ops.work import copying, risk, transport
from mngr.ops.world import World

ASSIGNMENT = re.compile(rb"export ([A-Za-z_][A-Za-z0-9_]*)='((?:[^']|'\\'')*)'\n")
PLACE = re.compile(r"HOME|USER|LOGNAME|SHELL|PATH|LANG|TZ|TMPDIR|LC_.*")
"""Variables that belong to a host rather than to an agent."""


def request(
    world: World, agent: Agent, address: str = "", changes: Mapping[str, object] | None = None
) -> CreateRequest:
    """Return the request that copies an agent; `changes` replace fields, merge labels and env."""
    record, given = agent.record, dict(changes or {})
    provider = str(given.get("provider") or "")
    full = _address(world, agent, address, provider)
    # A new host is created with the copy, and not for this look at where it goes.
    host, _ = place(world, CreateRequest(address=full, provider=provider), make=False)
    passes = bool(given.get("pass_login", record.pass_login))
    env = _environment(agent, everything=host.ref == agent.host.ref)
    if not passes and _leaves(agent.host, host):
        env = _without_login(env, world.agent_type(record.type).environment)
    work = work_of(agent.host, record)
    return CreateRequest(
        address=full,
        type=record.type,
        args=record.argv,
        source=f"{agent.name}@{agent.host.ref.name}.{agent.host.ref.provider}",
        base_commit=record.base_commit,
        transfer=_transfer(record, host),
        branch=_branch(record),
        include_dirty=True,
        windows=record.windows,
        labels={**record.labels, **given.pop("labels", {})},  # type: ignore[dict-item]
        env={**env, **given.pop("env", {})},  # type: ignore[dict-item]
        project=record.project,
        timeout=record.timeout,
        max_cost=record.max_cost,
        max_tokens=record.max_tokens,
        headless=record.headless,
        pass_login=record.pass_login,
        record=record.recorded and host.capabilities.shares_files,
        sandbox=record.sandbox,
        width=record.width,
        height=record.height,
        plugin={"clone": {"of": agent.id, "work": work}},
        numbered=not parse_address(address).name,
        conversation=conversation.files(world, [agent])[agent.id],
        verify=lambda host, copy: _verify(host, copy, agent, work),
    ).updated(given)


def _leaves(source: Host, host: Host) -> bool:
    """Return whether a copy leaves this machine."""
    return source.capabilities.shares_files and not host.capabilities.shares_files


def _transfer(record: AgentRecord, host: Host) -> str:
    """Return the original's transfer, unless that works only on the repository's host."""
    if record.transfer == "git-worktree" and not host.capabilities.shares_files:
        return "git-mirror"
    return record.transfer


def _branch(record: AgentRecord) -> str:
    """Return a new branch, since the agent's own is checked out."""
    return ":mngr/*" if record.transfer.startswith("git-") else ""


def _address(world: World, agent: Agent, address: str, provider: str) -> str:
    """Return the address; by default the original's host, with its name and a number."""
    asked = parse_address(address)
    ref = agent.host.ref
    name = asked.name or _free_name(world, agent)
    if asked.host or asked.provider or provider:
        return str(asked.replace(name=name))
    return f"{name}@{ref.name}.{ref.provider}"


def _free_name(world: World, agent: Agent) -> str:
    taken = {each.name for each in agents(world)}
    stem = re.sub(r"-\d{1,4}$", "", agent.name)[:57]
    return next(f"{stem}-{n}" for n in range(2, 10_000) if f"{stem}-{n}" not in taken)


def _environment(agent: Agent, *, everything: bool) -> dict[str, str]:
    """Return the variables it was started with, except those that mngr sets again."""
    told = event_log.read(agent, name="env")
    if not told:
        raise MngrError(f"the environment of {agent.name} cannot be read")
    found = {
        os.fsdecode(key): os.fsdecode(value.replace(b"'\\''", b"'"))
        for key, value in ASSIGNMENT.findall(told)
    }
    return {
        key: value
        for key, value in found.items()
        if not key.startswith("MNGR_") and (everything or not PLACE.fullmatch(key))
    }


def _without_login(env: Mapping[str, str], declared: Sequence[str]) -> dict[str, str]:
    """Drop the variables of the type's login: only the user may pass them to another host."""
    begins = tuple(key.removesuffix("*") for key in declared if key.endswith("*"))
    return {
        key: value
        for key, value in env.items()
        if key not in declared and not (begins and key.startswith(begins))
    }


# Names, bytes, executable bits and links of all files, as one number.
DIGEST = r"""
cd "$1" || exit 1
{
  find . -type f -exec cksum {} + | sort
  find . -type f -perm -100 | sort
  find . -type l -exec sh -c 'for each; do echo "$each -> $(readlink "$each")"; done' sh {} + |
    sort
} | cksum
"""


def work_of(host: Host, record: AgentRecord) -> str:
    """Return a text that identifies the work: commit and files, or a digest of a plain copy."""
    try:
        at = standing(host, record)
    except MngrError:
        done = host.run(["sh", "-c", DIGEST, "mngr", record.work_dir], timeout=3600)
        if done.code:
            raise MngrError(f"{record.work_dir} cannot be read: {done.complaint}") from None
        return done.stdout.decode().strip()
    return f"{at.head} {trees.take(host, record)[1].tree}"


def _verify(host: Host, copy: AgentRecord, agent: Agent, work: str) -> None:
    if work_of(host, copy) != work:
        left = copying.left_behind(transport.theirs(agent.host, agent.record))
        hint = "its files may have changed: stop the agent, then try again"
        if left:
            hint = f"{left[0]}: commit them in {agent.name}, then try again"
        raise MngrError(f"the copy of {agent.name} differs from it", hint)


def migrate(world: World, agent: Agent, host: Host, *, pass_login: bool = False) -> Created:
    """Stop, clone, verify, destroy; skip the steps that an earlier attempt has done."""
    copy = copied(world, agent, host)
    if agent.record.removal is None:
        was_alive = agent.state in ALIVE
        agent = running.stop(world, agent) if was_alive else agent
        step("original_stopped")
        if copy is None:
            return _moved(world, agent, host, was_alive, pass_login)
        _refuse_changed(agent, copy)
        _refuse_left(agent)
    elif copy is None:
        raise Refused(
            f"{agent.name} is being destroyed", f"restore it first: `mngr restore {agent.name}`"
        )
    destroy.destroy(world, agent)
    return Created(agent=refreshed(world, copy))


def _moved(world: World, agent: Agent, host: Host, was_alive: bool, pass_login: bool) -> Created:
    address = f"{agent.name}@{host.ref.name}.{host.ref.provider}"
    try:
        _refuse_left(agent)
        changes = {"pass_login": True} if pass_login else {}
        made = create.create(world, request(world, agent, address, changes))
    except (MngrError, OSError, KeyboardInterrupt):
        if was_alive:
            running.start(world, agent)
        raise
    step("copy_made")
    destroy.destroy(world, agent)
    return made


def copied(world: World, agent: Agent, host: Host) -> Agent | None:
    """Return the finished copy that an interrupted migration left on a host."""
    for each in agents(world):
        record = each.evidence.record
        if record is None or each.host.ref != host.ref or record.name != agent.name:
            continue
        if _mark(record).get("of") == agent.id and not each.unfinished:
            return each
    return None


def _mark(record: AgentRecord) -> dict[str, object]:
    mark = record.plugin.get("clone")
    return {**mark} if isinstance(mark, dict) else {}


def _refuse_changed(agent: Agent, copy: Agent) -> None:
    if _mark(copy.record).get("work") != work_of(agent.host, agent.record):
        raise Refused(
            f"{agent.name} changed after it was copied to {copy.host.ref.name}",
            f"destroy the copy ({copy.id}), then migrate again",
        )


def _refuse_left(agent: Agent) -> None:
    """Raise if there are commits that a copy does not get: in submodules, on other branches."""
    lost = risk.not_copied(agent.host, agent.record)
    if lost:
        raise Refused(
            f"{agent.name} has commits that migrate does not copy: {risk.summary(lost, 3)}",
            "push or merge them first",
        )


def arrived(world: World, name: str, host: Host) -> Agent | None:
    """Return a clone with that name whose original is gone: the migration is complete."""
    pool = agents(world)
    living = {each.id for each in pool}
    for each in pool:
        record = each.evidence.record
        if record is not None and each.host.ref == host.ref and name in (record.name, record.id):
            origin = _mark(record).get("of")
            return each if origin and origin not in living else None
    return None
