"""Create an agent: claim the name, write the record, make the work directory, launch.

The first record is written before anything else is created, and names everything that will be. So
what a killed create leaves is listed as LOST (create interrupted), and `gc`, `destroy` or repeating
the same create moves it to the trash.
"""

from __future__ import annotations

import os
import time

from mngr.agents.base import Launch, Receipt
from mngr.errors import MissingProgram, MngrError, Taken, UsageError
from mngr.hosts.base import Host, HostReading
from mngr.hosts.processes import this_process
from mngr.model import events
from mngr.model.records import AgentRecord, agent_dir, encode, record_stem
from mngr.model.struct import Struct
from mngr.ops import types
from mngr.ops.change import change
from mngr.ops.lifecycle import launch, names, sandboxing
from mngr.ops.lifecycle.request import CreateRequest, place
from mngr.ops.look.listing import Agent, agents, one, read, refreshed
from mngr.ops.steps import step
from mngr.ops.work import risk, sources, workdir
from mngr.ops.work.workdir import Plan
from mngr.ops.world import World

ENV_LIMIT = 1 << 20
OR_REUSE = "choose another, or use --reuse"


class Created(Struct):
    """The agent, the receipt of its first message, and remarks for stderr."""

    agent: Agent
    receipt: Receipt | None = None
    reused: bool = False
    remarks: tuple[str, ...] = ()


def create(world: World, request: CreateRequest) -> Created:
    """Create an agent; return when there is proof that it runs or has ended."""
    known = {host.ref.id for host in world.hosts()}
    host, name = place(world, request)
    try:
        return _create_on(world, host, name, request)
    except (MngrError, OSError, KeyboardInterrupt):
        if request.wants_new_host and host.ref.id not in known:
            from mngr.ops.hosting import hosts

            hosts.abandon(world, host)  # it was created for this agent, which does not exist
        raise


def _create_on(world: World, host: Host, name: str, request: CreateRequest) -> Created:
    if request.reuse and name:
        existing = _existing(world, host, name)
        if existing is not None:
            from mngr.ops.lifecycle import reusing

            reusing.refuse_different(host, existing, request)
            agent, receipt = reusing.reuse(world, existing, request.message)
            return Created(agent=agent, receipt=receipt, reused=True)
    if request.record and not host.capabilities.shares_files:
        raise UsageError(f"--record: the recorder runs on this machine, not on {host.ref.name}")
    request, chosen = types.settled(world, host, request)
    agent_id = events.new_id("agent")
    name = _claim(world, host, name, agent_id, request.numbered)
    step("claimed")
    try:
        agent, took_prompt, remarks = _create_claimed(world, host, name, agent_id, request)
    except (MngrError, OSError, KeyboardInterrupt):
        names.release(host, name, agent_id)
        raise
    # From here on the agent exists and keeps its name, even if its message is not delivered.
    return _confirmed(world, agent, request, took_prompt, (*chosen, *remarks))


def _claim(world: World, host: Host, name: str, agent_id: str, numbered: bool) -> str:
    if not name:
        return names.claim_any(host, (names.random_name() for _ in range(20)), agent_id)
    if numbered:
        return names.claim_any(host, names.numbered_from(name), agent_id)
    try:
        names.claim(host, name, agent_id, OR_REUSE)
    except Taken:
        if not _clear_interrupted(world, host, name):
            raise
        names.claim(host, name, agent_id, OR_REUSE)
    return name


def _clear_interrupted(world: World, host: Host, name: str) -> bool:
    """Move the remains of a killed create to the trash; return whether there were any."""
    existing = _existing(world, host, name)
    if existing is None or not existing.unfinished:
        return False
    from mngr.ops.lifecycle import destroy

    destroy.destroy(world, existing)
    return True


def _existing(world: World, host: Host, name: str) -> Agent | None:
    mine = [a for a in agents(world, None, [host]) if a.name == name]
    return one(mine, name) if mine else None


def _create_claimed(
    world: World, host: Host, name: str, agent_id: str, request: CreateRequest
) -> tuple[Agent, bool, tuple[str, ...]]:
    kind = world.agent_type(request.type or "command")
    plan = _plan(world, host, name, agent_id, request)
    record = _record(world, name, agent_id, request, plan)
    trusted = host.capabilities.shares_files or request.pass_login
    declared = _declared(kind.environment) if trusted else {}
    env = {**launch.agent_environment(host, record), **declared, **request.env}
    if sum(map(len, env.values())) > ENV_LIMIT:
        raise UsageError("the agent's environment is larger than 1 MiB")
    login = kind.login(env)
    if login is not None and login.kind == "renewable" and trusted:
        record = record.replace(login=login.place)
    context = launch.context(host, record)
    prepared = kind.prepare(
        context.replace(env=env, prompt=request.message, parent=request.conversation)
    )
    if not prepared.argv:
        raise UsageError("nothing to run", "give a command after `--`, or an agent type")
    if not (request.provision or request.uploads):  # these may install the program
        path = {**env, **prepared.env}.get("PATH", "")
        types.require_program(host, kind, prepared.argv[0], path)
    if not host.swap(record_stem(host.home, agent_id), 0, encode(record)):
        raise MngrError(f"the id {agent_id} already exists", "try again")
    step("recorded")
    try:
        record, remarks = _make_work_dir(world, host, record, plan, request)
        reading = _launch(world, host, record, request, prepared, env)
    except (MngrError, OSError, KeyboardInterrupt):
        from mngr.ops.lifecycle import destroy

        destroy.discard(world, host, record)
        raise
    for agent in read(world, host, reading, [agent_id]):
        return agent, prepared.took_prompt, (*prepared.remarks, *remarks)
    raise MngrError(f"{name} vanished right after its creation")


def _launch(
    world: World,
    host: Host,
    record: AgentRecord,
    request: CreateRequest,
    prepared: Launch,
    env: dict[str, str],
) -> HostReading:
    """Fill the agent's folder and its work directory, run the program and read the agent."""
    if request.verify is not None:
        request.verify(host, record)
    if record.sandbox:
        sandboxing.enclose(host, record, prepared.argv)
    folder = agent_dir(host.home, record.id)
    scripts = {os.path.join(folder, k): (v, 0o700) for k, v in request.scripts.items()}
    host.put({**scripts, **launch.launch_files(world, host, record, prepared, env)})
    step("files")
    _provision(host, record, request)
    if record.transfer == "rsync":
        risk.mark_copied(host, record)
    reading = launch.launch(host, record, "agent_created")
    step("launched")
    return reading


def preview(world: World, request: CreateRequest) -> tuple[str, Host, Plan | None]:
    """Return the name, the host and the plan of what would be created.

    The plan is None if an agent is reused or if the host has yet to be created.
    """
    host, name = place(world, request, make=False)
    if not host.ref.id:  # not made yet
        return name or host.ref.name, host, None
    existing = _existing(world, host, name) if name else None
    if existing is not None and request.reuse:
        from mngr.ops.lifecycle import reusing

        reusing.refuse_different(host, existing, request)
        return name, host, None
    if existing is not None and not existing.unfinished:
        raise Taken(f"the name {name!r} is taken", OR_REUSE)
    types.settled(world, host, request)
    name = name or names.random_name()
    return name, host, _plan(world, host, name, "agent-" + "x" * 32, request)


def _plan(world: World, host: Host, name: str, agent_id: str, request: CreateRequest) -> Plan:
    copied = request.transfer in ("rsync", "copy", "none")
    clean = not (request.include_dirty or request.committed_only or copied)
    origin = sources.resolve(world, host, request.source, status=clean)
    return workdir.plan(host, request, origin, name, agent_id)


def _record(
    world: World, name: str, agent_id: str, request: CreateRequest, plan: Plan
) -> AgentRecord:
    now = time.time()
    return AgentRecord(
        id=agent_id,
        name=name,
        type=request.type or "command",
        argv=request.args,
        work_dir=plan.work_dir,
        cwd=plan.origin.subdir if plan.transfer.startswith("git-") else "",
        source=plan.source,
        repository=plan.repository,
        transfer=plan.transfer,
        made_work_dir=plan.made_work_dir,
        branch=plan.branch,
        made_branch=plan.made_branch,
        base_commit=request.base_commit or plan.base_commit,
        labels=request.labels,
        project=request.project or os.path.basename(plan.source.rstrip("/")).removesuffix(".git"),
        create_time=now,
        launch=launch.new_launch_id(),
        launch_time=now,
        worker=this_process(),
        timeout=request.timeout,
        max_cost=request.max_cost,
        max_tokens=request.max_tokens,
        windows=request.windows,
        width=request.width or world.config.count("tmux.width"),
        height=request.height or world.config.count("tmux.height"),
        history=world.config.count("tmux.history"),
        headless=request.headless,
        pass_login=request.pass_login,
        recorded=request.record,
        sandbox=request.sandbox,
        plugin=request.plugin,
    )


def _declared(keys: tuple[str, ...]) -> dict[str, str]:
    begins = tuple(key.removesuffix("*") for key in keys if key.endswith("*"))
    return {
        key: value
        for key, value in os.environ.items()
        if key in keys or (begins and key.startswith(begins))
    }


def _make_work_dir(
    world: World, host: Host, record: AgentRecord, plan: Plan, request: CreateRequest
) -> tuple[AgentRecord, tuple[str, ...]]:
    made = workdir.make(host, world.home, plan, request.progress)
    step("work_dir")
    remarks, changes = list(made.remarks), {}
    if made.branch != plan.branch:
        changes["branch"] = made.branch
        remarks.insert(0, f"the branch {plan.branch} already exists; using {made.branch}")
    if record.cwd and not _is_folder(host, os.path.join(record.work_dir, record.cwd)):
        changes["cwd"] = ""
        remarks.append(
            f"{record.cwd} is not in the work directory: {record.name} starts at its top"
        )
    if changes:
        record = change(host, record.id, lambda current: current.updated(changes))
    return record, tuple(remarks)


def _is_folder(host: Host, path: str) -> bool:
    return host.run(["test", "-d", path], timeout=30).code == 0


def _provision(host: Host, record: AgentRecord, request: CreateRequest) -> None:
    for local, remote in request.uploads:
        try:
            with open(local, "rb") as file:
                content, mode = file.read(), os.fstat(file.fileno()).st_mode & 0o777
        except OSError as error:
            raise UsageError(f"--upload-file: {local}: {error.strerror}") from None
        host.put({os.path.join(record.work_dir, remote): (content, mode)})
    for command in request.provision:
        from mngr.ops.work import execute

        done = host.run(execute.shell_argv(host, record, command), timeout=3600)
        done.raise_if_failed(f"provisioning failed: {command!r}")


def _confirmed(
    world: World, agent: Agent, request: CreateRequest, took_prompt: bool, remarks: tuple[str, ...]
) -> Created:
    _require_launched(world, agent)
    world.emit("agent_created", agent.host, agent.record)
    if agent.record.login:
        from mngr.ops.look import logins

        remarks = (*remarks, *logins.remarks(world, agent))
    receipt = None
    if request.message and not took_prompt:
        receipt = _first_message(world, agent, request.message)
        agent = refreshed(world, agent)
    return Created(agent=agent, receipt=receipt, remarks=remarks)


def _require_launched(world: World, agent: Agent) -> None:
    """Remove an agent whose program was never run, with its name and branch, and raise."""
    reason = agent.evidence.not_run
    if not reason:
        return
    from mngr.ops.lifecycle import destroy

    destroy.discard(world, agent.host, agent.record)
    missing = reason.startswith("command not found:")
    hint = "a relative path is looked up where the agent starts" if missing else ""
    kind = MissingProgram if missing else MngrError
    raise kind(f"{agent.name} could not be launched: {reason}", hint)


def _first_message(world: World, agent: Agent, text: str) -> Receipt:
    """Send the first message; a failure here does not undo the creation of the agent."""
    from mngr.ops.talk import message

    try:
        return message.send(world, agent, text)
    except MngrError as error:
        return Receipt(outcome="failed", detail=error.message)
