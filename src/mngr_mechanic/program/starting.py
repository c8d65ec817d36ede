"""The entry point: read the task, do it, publish the outcome."""

from __future__ import annotations

import os
import sys

from mngr_mechanic.program import project, task, work
from mngr_mechanic.program.clock import Stopwatch
from mngr_mechanic.program.mechanic import Mechanic


def main(argv: list[str]) -> int:
    args = task.parser().parse_args(argv)
    try:
        wanted = task.from_arguments(args, _prompt(args.prompt_file))
    except task.Unclear as error:
        print(f"mechanic: {error}", flush=True)
        try:
            wanted = task.from_arguments(args, sys.stdin.readline())
        except task.Unclear:
            return 2
    clock = Stopwatch(wanted.budget)
    clock.say(f"mechanic: {wanted.mode} {wanted.test}, within {wanted.budget:g} s")
    try:
        return _work(wanted, clock)
    except work.GitFailed as error:
        clock.say(f"git: {error}")
        return 1


def _prompt(path: str) -> str:
    if not path or not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _work(wanted: task.Assignment, clock: Stopwatch) -> int:
    root = os.getcwd()
    dirty = work.changed(root)
    if dirty:
        clock.say(f"uncommitted changes: {', '.join(dirty[:10])}")
        clock.say("commit or remove them, then start the mechanic again")
        return 1
    _in_newer_python(root, wanted.python)
    mechanic = Mechanic(wanted, root, "", clock)
    try:
        mechanic.probe = _probes(mechanic.base)
        done = _committed(mechanic)
    finally:
        mechanic.close()
    clock.say(done.summary)
    clock.say(work.publish(root, done))
    return 0


def _in_newer_python(root: str, given: str) -> None:
    """Restart in the project's Python if it is newer, because it parses the project's code."""
    if not sys.argv[0].endswith(".pyz") or os.environ.get("MECHANIC_AGAIN"):
        return
    try:
        python = project.interpreter(root, given)
    except project.NoPytest:
        return
    if project.is_newer(python):
        os.environ["MECHANIC_AGAIN"] = "1"
        sys.stdout.flush()
        os.execv(python, [python, *sys.argv])


def _committed(mechanic: Mechanic) -> work.Done:
    try:
        return mechanic.do()
    except work.GitFailed as error:
        reason = f"found a fix, but git refused to commit it:\n{error}"
        summary, needs = "Nothing was changed: git refused the commit", "a hook that accepts it"
        return work.Done("fix", summary, reason, needs)


def _probes(base: str) -> str:
    """Write the probes to files for the project's Python: the originals may be in a zip file."""
    from importlib.resources import files

    folder = os.path.join(base, "probe")
    os.mkdir(folder)
    for probe in files("mngr_mechanic.program.probe").iterdir():
        if probe.name.endswith(".py"):
            with open(os.path.join(folder, probe.name), "wb") as file:
                file.write(probe.read_bytes())
    return folder
