"""doctor says what is wrong and what to do; --fix does it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.support.cli import Cli, Result
from tests.support.fleet import fleet, socket
from tests.support.screen import Screen

NONE = ("--transfer", "none")


def found(result: Result) -> dict[str, dict[str, str]]:
    return {row["check"]: row for row in json.loads(result.out)["checks"]}


def test_a_healthy_world_has_no_problems(mngr: Cli) -> None:
    mngr.create("foo", *NONE)
    done = mngr("doctor").ok()
    assert done.out.splitlines()[0].split() == ["CHECK", "STATUS", "DETAIL", "REMEDY"]
    checks = found(mngr("doctor", "--format", "json").ok())
    for name in ("git", "tmux", "home", "records"):
        assert checks[name]["status"] == "ok", checks[name]


def test_a_broken_record_is_a_problem_with_a_remedy(mngr: Cli) -> None:
    folder = mngr.home / "agents" / f"agent-{3:032x}"
    folder.mkdir(parents=True)
    (folder / "agent.1.json").write_text("{")
    done = mngr("doctor", "--format", "json")
    assert done.code == 1
    row = found(done)["records"]
    assert row["status"] == "problem"
    assert str(folder) in row["remedy"]
    assert mngr("doctor", "--fix").code == 1, "a record is never thrown away"
    assert (folder / "agent.1.json").exists()


def test_missing_programs_are_named(local: Cli, tmp_path: Path) -> None:
    few = tmp_path / "bin"
    few.mkdir()
    for program in ("sh", "cat", "find", "git", "test"):
        os.symlink(str(shutil.which(program)), few / program)
    checks = found(local("doctor", "--format", "json", env={"PATH": str(few)}))
    assert (checks["tmux"]["status"], checks["git"]["status"]) == ("problem", "ok")
    assert "install tmux 3.2 or newer" in checks["tmux"]["remedy"], "no package manager here"
    (few / "tmux").write_text("#!/bin/sh\necho tmux 2.9\n")
    (few / "tmux").chmod(0o755)
    old = found(local("doctor", "--format", "json", env={"PATH": str(few)}))["tmux"]
    assert (old["status"], old["detail"]) == ("problem", "tmux 2.9")
    assert old["remedy"] == "install tmux 3.2 or newer" and not old["fixable"]
    assert checks["awk"]["detail"] == "awk is not installed"


def test_fixing_installs_what_is_missing(local: Cli, tmp_path: Path) -> None:
    """The package manager is a script: it links the real program to where PATH has it."""
    few = tmp_path / "bin"
    few.mkdir()
    also = "awk date df id mkdir ps rm tar".split()
    for program in ("sh", "cat", "env", "find", "git", "ln", "rsync", "asciinema", "test", *also):
        os.symlink(str(shutil.which(program) or "/bin/true"), few / program)
    manager = few / "apt-get"
    manager.write_text(f"""#!/bin/sh
echo "$DEBIAN_FRONTEND $*" >> {tmp_path}/asked
[ "$3" = update ] && exec ln -s x {tmp_path}/lists
[ -h {tmp_path}/lists ] || {{ echo no lists >&2; exit 100; }}
for package; do :; done
ln -s {Path(str(shutil.which("tmux"))).parent}/$package {few}/$package
""")
    (few / "sudo").write_text('#!/bin/sh\nshift\nexec "$@"\n')
    for script in (manager, few / "sudo"):
        script.chmod(0o755)
    env = {"PATH": str(few)}
    before = found(local("doctor", "--format", "json", env=env))["tmux"]
    assert before["status"] == "problem" and before["fixable"]
    assert before["remedy"].endswith("apt-get install -y tmux")
    assert not (tmp_path / "asked").exists()
    done = local("doctor", "--fix", "--format", "json", env=env).ok()
    assert found(done)["tmux"]["status"] == "ok"
    assert (tmp_path / "asked").read_text().splitlines() == [
        "noninteractive -o DPkg::Lock::Timeout=120 install -y tmux",
        "noninteractive -o DPkg::Lock::Timeout=120 update",
        "noninteractive -o DPkg::Lock::Timeout=120 install -y tmux",
    ]
    (few / "tmux").unlink()
    manager.write_text("#!/bin/sh\necho 'E: no such package' >&2\nexit 100\n")
    said = local("doctor", "--fix", env=env).err.splitlines()
    assert said[0].startswith("Fixing tmux: tmux is not installed")
    assert said[1].startswith("mngr: tmux is not fixed: ") and "E: no such package" in said[1]


def test_fixing_lets_the_shell_complete_mngr(local: Cli) -> None:
    for shell, place in (
        ("bash", ".local/share/bash-completion/completions/mngr"),
        ("fish", ".config/fish/completions/mngr.fish"),
    ):
        env = {"SHELL": f"/bin/{shell}"}
        row = found(local("doctor", "--format", "json", env=env).ok())["completion"]
        assert row["status"] == "absent" and f"mngr completion {shell}" in row["remedy"]
        local("doctor", "--fix", env=env).ok()
        script = (local.user_home / place).read_text()
        assert script == local("completion", shell).ok().out
        row = found(local("doctor", "--format", "json", env=env).ok())["completion"]
        assert row["status"] == "ok"
    (local.user_home / ".zshrc").write_text("source <(mngr completion zsh)\n")
    rows = found(local("doctor", "--format", "json", env={"SHELL": "/bin/zsh"}).ok())
    assert rows["completion"]["status"] == "ok"


def test_fixing_mends_what_it_says(mngr: Cli) -> None:
    mngr.create("kept", *NONE)
    mngr.create("old", *NONE, "--", "true")
    mngr("destroy", "old").ok()
    mngr.controller_home.mkdir(exist_ok=True)
    mngr.controller_home.chmod(0o777)
    stray = ["tmux", "-S", mngr.socket, "new-session", "-d", "-s", "stray", "sleep", "1000"]
    subprocess.run(stray, env=mngr.env, check=True)
    at_once = {"MNGR__TRASH__KEEP": "0s"}
    warned = mngr("doctor", "--format", "json", env=at_once).ok()
    assert {"permissions", "sessions", "leftovers"} <= set(found(warned))
    dry = mngr("doctor", "--fix", "--dry-run", env=at_once).ok().err
    assert dry.count("Would fix") == 3
    assert "stray" in mngr.tmux("list-sessions")
    said = mngr("doctor", "--fix", env=at_once).ok().err
    assert said.count("Fixing") == 3
    assert mngr.tmux("list-sessions", "-F", "#S") == f"{mngr.agent('kept')['id']}\n"
    assert mngr.controller_home.stat().st_mode & 0o022 == 0
    assert not list((mngr.home / "trash").iterdir())
    assert not {"permissions", "sessions", "leftovers"} & set(
        found(mngr("doctor", "--format", "json", env=at_once).ok())
    )


def test_sessions_are_found_on_every_host_that_answers(local: Cli) -> None:
    with fleet(local, "dead!", "alive"):
        stray = ["tmux", "-S", socket(local, "alive"), "new-session", "-d", "-s", "stray"]
        subprocess.run([*stray, "sleep", "1000"], env=local.env, check=True)
        told = found(local("doctor", "--format", "json").ok())
        assert "stray" in told["sessions"]["detail"]
        assert "dead does not answer" in told["hosts"]["detail"]


def test_wrong_input(local: Cli) -> None:
    local("doctor", "everything").fails(2, "everything")
    local("doctor", "--fixx").fails(2, "--fixx", "--fix")


def test_on_a_terminal_what_to_type_is_never_cut(local: Cli) -> None:
    with Screen(local, {"SHELL": "/bin/bash", "COLUMNS": "50"}) as screen:
        screen.mngr("doctor")
        screen.shows("\ncompletion: add to ~/.bashrc: source <(mngr completion bash)\n")
        assert "REMEDY" not in screen.text()


def test_the_settings_file_that_is_broken_is_the_one_to_edit(local: Cli) -> None:
    local.controller_home.mkdir()
    local.write(".mngr/settings.toml", "")
    broken = {"user": local.controller_home, "local": local.repo / ".mngr"}
    for scope, folder in broken.items():
        name = "settings.local.toml" if scope == "local" else "settings.toml"
        (folder / name).write_text("broken = [")
        checks = found(local("doctor", "--format", "json"))
        assert checks["settings"]["remedy"] == f"fix it with `mngr config edit --scope {scope}`"
        (folder / name).unlink()
