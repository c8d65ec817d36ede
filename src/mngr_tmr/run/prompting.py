"""The prompts of agents: packaged templates, which a project can replace with its own."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from string import Template

from mngr.errors import UsageError
from mngr.model.quoting import quote
from mngr_outcome.outcome import cleaned
from mngr_tmr.journal.model import Run, Task
from mngr_tmr.run.settings import ProjectSettings, pytest_command
from mngr_tmr.verify import assertions

STANDING = {
    "passed": "It passes. Improve it within its contract, if necessary.",
    "failed": "It fails. Find the cause, and fix it.",
    "flaky": "It is flaky. Find the cause, and make the test reliable.",
}
TASK = {
    "fix": "Make it pass, for the right reason.",
    "improve": (
        "Check that it tests everything its block promises: output, exit code, effects, and "
        "errors if they matter. Remove assertions about anything that is not in the block."
    ),
}


def template(project: ProjectSettings, repository: str, name: str) -> Template:
    own = Path(repository, project.prompts, f"{name}.md") if project.prompts else None
    if own is not None and own.is_file():
        return Template(own.read_text(encoding="utf-8"))
    packaged = resources.files("mngr_tmr.run").joinpath("prompts", f"{name}.md")
    return Template(packaged.read_text(encoding="utf-8"))


def render(project: ProjectSettings, repository: str, name: str, **values: str) -> str:
    """Return the template filled in; raise UsageError for an unknown variable in it."""
    try:
        return template(project, repository, name).substitute(values).strip() + "\n"
    except (KeyError, ValueError) as error:
        known = ", ".join(f"${each}" for each in sorted(values))
        raise UsageError(f"the prompt {name}.md: {error}", f"it may use {known}") from None


def tester(run: Run, project: ProjectSettings, task: Task, source: str) -> str:
    runs_pytest = pytest_command(project, run.repository, run.options.provider)
    text = render(
        project,
        run.repository,
        "tester",
        node_id=task.node_id,
        want=task.want,
        standing=STANDING.get(run.before(task.node_id).standing, STANDING["failed"]),
        block=cited(source, task.node_id),
        command=f"{runs_pytest} {quote(task.node_id)}",
        task=TASK[task.want],
        forbidden=", ".join(project.off_limits),
    )
    more = (_canary, _held, _suspects)
    parts = [text, *(part(run, project, task) for part in more)]
    return "\n".join(part for part in parts if part)


def _canary(run: Run, project: ProjectSettings, task: Task) -> str:
    waiting = [each for each in run.tasks.values() if each.canary == task.id]
    if not waiting:
        return ""
    number = str(len(waiting))
    return render(project, run.repository, "canary", number=number, signature=task.signature)


def _held(run: Run, project: ProjectSettings, task: Task) -> str:
    """Explain why the change of an earlier agent is not on the branch."""
    held = task.held
    flags = held.verdict.flags if held and held.verdict else ()
    lines = "\n".join(f"    {' '.join(cleaned(each, 300).split())}" for each in flags)
    return render(project, run.repository, "held", lines=lines) if lines else ""


def _suspects(run: Run, project: ProjectSettings, task: Task) -> str:
    found = run.suspects.get(task.id) or run.suspects.get(task.cluster, ())
    lines = [
        f"    {each.score:.2f}  {each.path}:{each.lines}  "
        f"run by {each.failing} failing and {each.passing} passing tests"
        for each in found
    ]
    return render(project, run.repository, "suspects", lines="\n".join(lines)) if lines else ""


def integrator(run: Run, project: ProjectSettings, part: str, paths: str, tests: str) -> str:
    return render(project, run.repository, "integrator", part=part, paths=paths, tests=tests)


def cited(source: str, node_id: str) -> str:
    """Return the block that a test cites, indented, or a note that it cites none."""
    name = node_id.partition("::")[2].partition("[")[0]
    function = assertions.functions(source).get(name)
    block = assertions.blocks(function).strip() if function is not None else ""
    if not block:
        return "    (it cites none: what its name and docstring say is the contract)"
    return "\n".join(f"    {line}" for line in block.splitlines())
