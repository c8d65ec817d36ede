"""Launch an agent: write its files, start its session, and wait for proof that it started.

The launcher is a file, never typed text: a terminal truncates long lines without an error.
"""

from __future__ import annotations

import os
import sys
import time

from mngr.agents.base import Launch, LaunchContext
from mngr.errors import MissingProgram, MngrError, NotFound
from mngr.hosts import agent_files, tmux, tmux_scripts
from mngr.hosts.base import CommandFailed, Files, Host, HostReading
from mngr.hosts.processes import this_process
from mngr.model import events, jsontext
from mngr.model.completed import Completed
from mngr.model.quoting import join, quote
from mngr.model.records import AgentRecord, agent_dir
from mngr.ops.lifecycle import sandboxing
from mngr.ops.limits import watcher
from mngr.ops.look.output import keeper
from mngr.ops.world import World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

LAUNCHER = (
    r"""#!/bin/sh
# Run one launch of an agent, and record its start and its end. Argument: the first event.
dir={dir} launch={launch}
{mark}. "$dir/env"
"""
    + agent_files.FUNCTIONS.replace("{", "{{").replace("}", "}}")
    + r"""
now() {{
  time=$(date -u +%s.%N,%Y-%m-%dT%H:%M:%SZ) || return
  stamp=${{time#*,}} time=${{time%%,*}}; case $time in *N) time=${{time%.*}} ;; esac
}}
# Overwrite the reserved file, because the disk may be full when the program ends. The agent may
# have replaced it by a link.
report() {{
  file=$dir/.$1.$launch
  if [ -e "$file" ] || [ -h "$file" ]; then plain "$file" || rm -rf "$file"; fi
  printf '%s\n' "$2" 1<> "$file" && mv -f "$file" "$dir/$1"
}}
ended() {{
  # A command that ends the program may also end a child of this shell, such as mv.
  tries=0
  until now && report exit "{{\"launch\":\"$launch\",\"code\":$1,\"time\":$time,\"cause\":$2}}"; do
    tries=$((tries + 1))
    [ "$tries" -lt 50 ] || exit "$1"
  done 2> /dev/null
  event="{{\"event_id\":\"evt-$launch-exit\",\"timestamp\":\"$stamp\""
  event="$event,\"source\":\"launcher\",\"type\":\"agent_exited\",\"exit_code\":$1,\"cause\":$2}}"
  note "$dir/events.jsonl" "$event"
  exit "$1"
}}
printf '%1000s\n' '' > "$dir/.exit.$launch"
# Written here and not by mngr, because a program may end before mngr reads the agent.
note "$dir/events.jsonl" "$1"
# Signals for the program must not end the launcher before it has reported. A handler instead of '',
# because the program would inherit an ignored signal. HUP ends the launcher: if tmux dies, the
# kernel sends HUP to the program only when the leader of the session ends.
trap : INT QUIT TERM
cd {cwd} 2> /dev/null || cd {work_dir} || ended 125 '"work directory is missing"'
unset OLDPWD
if [ -f {box} ]; then
  problem=$(sh {box} --prove 2>&1) || {{
    printf '%s\n' "$problem" >&2
    problem=$(printf %s "$problem" | tail -n 1 | tr -cd 'A-Za-z0-9 ,.:/_-')
    ended 126 "\"the sandbox failed: $problem\""
  }}
fi
{links}command -v {program} > /dev/null || {{
  printf 'mngr: %s: command not found\n' {program} >&2
  ended 127 {not_found}
}}
now
report started "{{\"launch\":\"$launch\",\"pid\":$$,\"time\":$time}}"
{limit}{command}
code=$?
{daemons}{after_limit}
ended "$code" '""'
"""
)

HEADLESS = """rm -f "$dir/stdout" "$dir/stderr"
printf '' > "$dir/stdout"; printf '' > "$dir/stderr"
tail -q -n +1 -f "$dir/stdout" "$dir/stderr" & viewer=$!
{command} < /dev/null > "$dir/stdout" 2> "$dir/stderr"
code=$?
kill "$viewer" 2> /dev/null
(exit "$code")"""

# Those of this agent only: they have its id in their environment.
DAEMONS = r"""for each in $(grep -lsF -- {pattern} /proc/[0-9]*/environ); do
  each=${{each%/environ}}
  ! grep -qsF -- {word} "$each/cmdline" || kill "${{each#/proc/}}" 2> /dev/null
done
"""

WINDOW = """#!/bin/sh
{mark}. {dir}/env
cd {cwd} 2> /dev/null || cd {work_dir} || exit 125
unset OLDPWD
set -- sh -c "$1"
box={box}; {wrap}
exec "$@"
"""


def launcher(home: str, record: AgentRecord, launch: Launch) -> str:
    """Return the launcher script for one launch."""
    # `exec` in a subshell runs a program even if its name is also a shell builtin or keyword.
    words = f"({sandboxing.wrapped(home, record.id, join(launch.argv))})"
    program = launch.argv[0]
    return LAUNCHER.format(
        dir=quote(agent_dir(home, record.id)),
        mark=tmux_scripts.MARK.format(mark=tmux_scripts.mark(record.id)),
        launch=quote(record.launch),
        work_dir=quote(record.work_dir),
        cwd=quote(os.path.join(record.work_dir, record.cwd)),
        box=quote(sandboxing.path(home, record.id)),
        links="".join(
            f'ln -sfn {quote(target)} "$dir"/{quote(path)}\n'
            for path, target in launch.links.items()
        ),
        program=quote(program),
        not_found=quote(jsontext.dumps(f"command not found: {program}")),
        limit=_watcher(home, record),
        daemons=_daemons(record, launch),
        after_limit=watcher.REPORT,
        command=HEADLESS.format(command=words) if record.headless else words,
    )


def _watcher(home: str, record: AgentRecord) -> str:
    if not watcher.Limits.of(record):
        return ""
    return watcher.START.format(path=quote(watcher.path(home, record.id)))


def _daemons(record: AgentRecord, launch: Launch) -> str:
    if not launch.daemons:
        return ""
    pattern = quote(f"MNGR_AGENT_ID={record.id}")
    return DAEMONS.format(pattern=pattern, word=quote(launch.daemons))


def env_file(env: Mapping[str, str]) -> bytes:
    """Return shell assignments; single quotes pass any bytes but NUL unchanged."""
    lines = [f"export {key}={_always_quoted(value)}" for key, value in sorted(env.items())]
    # With tmux's own variables, a stray `tmux kill-server` in an agent would end all agents.
    text = "unset TMUX TMUX_PANE TERM_PROGRAM TERM_PROGRAM_VERSION\n" + "\n".join(lines) + "\n"
    return os.fsencode(text)


def _always_quoted(value: str) -> str:
    return "'" + value.replace("'", "'\\''") + "'"


def agent_environment(host: Host, record: AgentRecord) -> dict[str, str]:
    """Return the variables that mngr sets for an agent."""
    return {
        **host.environment,
        "MNGR_AGENT_NAME": record.name,
        "MNGR_AGENT_ID": record.id,
        "MNGR_AGENT_STATE_DIR": agent_dir(host.home, record.id),
        "MNGR_AGENT_WORK_DIR": record.work_dir,
        "MNGR_HOST_DIR": host.home,
        "MNGR_GIT_BASE": record.base_commit,
    }


def launch_files(
    world: World, host: Host, record: AgentRecord, launch: Launch, env: Mapping[str, str]
) -> Files:
    """Return all files of a launch; the environment is readable only by its owner."""
    folder = agent_dir(host.home, record.id)
    conf = tmux.conf(host.home, record.width, record.height, record.history)
    files: dict[str, tuple[bytes, int]] = {
        os.path.join(host.home, "tmux.conf"): (conf, 0o600),
        os.path.join(folder, "env"): (env_file({**env, **launch.env}), 0o600),
        os.path.join(folder, "launch.sh"): (
            os.fsencode(launcher(host.home, record, launch)),
            0o700,
        ),
        **{os.path.join(folder, name): content for name, content in launch.files.items()},
    }
    if record.windows:
        window = WINDOW.format(
            mark=tmux_scripts.MARK.format(mark=tmux_scripts.mark(record.id)),
            dir=quote(folder),
            work_dir=quote(record.work_dir),
            cwd=quote(os.path.join(record.work_dir, record.cwd)),
            box=quote(sandboxing.path(host.home, record.id)),
            wrap=sandboxing.WRAP,
        )
        files[os.path.join(folder, "window.sh")] = (os.fsencode(window), 0o700)
    if watcher.Limits.of(record):
        files |= watcher.files(world, host, record)
    return files


def launch(host: Host, record: AgentRecord, event_type: str, grace: float = 1.0) -> HostReading:
    """Start the session; return a reading once the launcher has reported, or raise the reason.

    Processes left by an earlier launch are ended first, with KILL after `grace` seconds.
    """
    folder = agent_dir(host.home, record.id)
    event = events.of_agent(event_type, record.id, record.name)
    words = tmux.new_session(
        record.id,
        record.name,
        record.launch,
        record.work_dir,
        ["sh", os.path.join(folder, "launch.sh"), event],
        size=(record.width, record.height),
        windows=[
            (window.name, ["sh", os.path.join(folder, "window.sh"), window.command])
            for window in record.windows
        ],
        pipe_to=_recorder(host, record) if record.recorded else keeper(host.home, record.id),
    )
    patterns = tmux_scripts.patterns([record.id]) if record.launches > 1 else ""
    last = [str(max(1, round(grace))), patterns]
    script = ["sh", "-c", tmux_scripts.LAUNCH, "mngr", host.home, host.socket, record.id, *last]
    try:
        return host.read([record.id], after=[*script, *words], patience=60 + grace)
    except CommandFailed as failed:
        raise _failure(host, record, failed.done) from None


def _failure(host: Host, record: AgentRecord, done: Completed) -> MngrError:
    if done.code == tmux_scripts.NOT_INSTALLED:
        return MissingProgram(f"tmux is not installed on {host.ref.name}", _install(host))
    if done.code == tmux_scripts.GONE:
        return NotFound(f"{record.name} was destroyed in the meantime", "see `mngr restore --list`")
    return MngrError(f"{record.name} could not be launched: {done.complaint}")


def _install(host: Host) -> str:
    if host.capabilities.shares_files:
        return "install tmux 3.2 or newer"
    return f"see `mngr doctor --host {host.ref.name}`"


def _recorder(host: Host, record: AgentRecord) -> str:
    """Return the recorder's command for a host on this machine; it writes the log as well."""
    cast = os.path.join(agent_dir(host.home, record.id), "record.cast")
    size = [str(record.width), str(record.height)]
    recorder = join([sys.executable, "-m", "mngr.hosts.recorder", cast, *size])
    # tmux expands % and # in these words.
    words = recorder.replace("#", "##").replace("%", "%%")
    return f"{words} | {{ {keeper(host.home, record.id)}; }}"


def new_launch_id() -> str:
    return os.urandom(8).hex()


def context(host: Host, record: AgentRecord) -> LaunchContext:
    folder = agent_dir(host.home, record.id)
    local = host.capabilities.shares_files
    return LaunchContext(record=record, state_dir=folder, local=local)


def launched_now(record: AgentRecord) -> AgentRecord:
    """Return the record of the next launch: new id, no stop intent, this process as creator."""
    return record.replace(
        launch=new_launch_id(),
        launch_time=time.time(),
        launches=record.launches + 1,
        worker=this_process(),
        stop=None,
        archived=None,
    )
