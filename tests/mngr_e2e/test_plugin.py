"""The `e2e` fixture in a project, run by a separate pytest process."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from mngr_e2e.commands import tree
from tests.mngr_e2e.project import Project
from tests.support.cli import until


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def test_a_passing_test_leaves_its_result_and_its_transcript(project: Project) -> None:
    project.test('''
        def test_say(e2e: E2eSession) -> None:
            e2e.write_tutorial_block("""
            # say it
            echo hello
            """)
            result = e2e.run("echo hello; echo oops >&2; exit 3", comment="say it")
            assert (result.exit_code, result.stdout, result.stderr) == (3, "hello\\n", "oops\\n")
    ''')
    done = project.pytest()
    assert done.returncode == 0, done.stdout
    result = project.result()
    assert result["schema"] == 1
    assert result["node_id"] == "test_it.py::test_say"
    assert result["outcome"] == "passed"
    assert result["block"] == "# say it\necho hello"
    (command,) = result["commands"]
    assert command["text"] == "echo hello; echo oops >&2; exit 3"
    assert command["exit_code"] == 3
    assert 0 <= command["start"] <= command["start"] + command["seconds"] <= result["seconds"]
    lines = project.transcript().splitlines()
    assert lines[:2] == ["# say it", "$ echo hello; echo oops >&2; exit 3"]
    assert sorted(lines[2:4]) == ["! oops", "hello"]
    assert lines[4:] == ["? 3"]


def test_artifacts_stay_out_of_git_and_latest_names_the_newest_run(project: Project) -> None:
    project.test("def test_a(e2e): e2e.run('true')\n")
    project.pytest(MNGR_E2E_RUN="first")
    project.pytest(MNGR_E2E_RUN="second")
    base = project.root / ".mngr-e2e"
    assert [run.name for run in project.runs] == ["first", "second"]
    assert os.readlink(base / "latest") == "second"
    assert (base / ".gitignore").read_text() == "*\n"
    subprocess.run(["git", "init", "-q", "."], cwd=project.root, check=True)
    status = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=project.root, capture_output=True, text=True
    )
    assert ".mngr-e2e" not in status.stdout


def test_a_project_without_end_to_end_tests_gets_no_folder(project: Project) -> None:
    project.test("def test_a(): pass\n")
    assert project.pytest().returncode == 0
    assert not (project.root / ".mngr-e2e").exists()


def test_every_outcome_is_told_apart(project: Project) -> None:
    project.test("""
        def test_passed(e2e): pass
        def test_failed(e2e): assert not e2e
        def test_skipped(e2e): pytest.skip("later")
        @pytest.mark.xfail
        def test_xfailed(e2e): assert not e2e
        @pytest.fixture
        def broken(e2e): raise OSError
        def test_error(broken): pass
        @pytest.fixture
        def breaks(e2e):
            yield
            raise OSError
        def test_error_at_the_end(breaks): pass
    """)
    project.pytest()
    outcomes = {name: result["outcome"] for name, result in project.results().items()}
    assert outcomes == {
        "test_passed": "passed",
        "test_failed": "failed",
        "test_skipped": "skipped",
        "test_xfailed": "xfailed",
        "test_error": "error",
        "test_error_at_the_end": "error",
    }


@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_each_test_has_a_folder_of_its_own(project: Project, options: tuple[str, ...]) -> None:
    body = """
        @pytest.mark.parametrize("x", ["a b", "a/b", "a-b", "ä", "x" * 200])
        def test_same(e2e, x):
            expect(e2e.run(f"echo '{x}'")).to_succeed()
        class TestIn:
            def test_same(self, e2e): e2e.run("echo in a class")
    """
    project.test(body, "test_one.py")
    project.test(body, "test_two.py")
    done = project.pytest(*options)
    assert done.returncode == 0, done.stdout
    (run,) = project.runs
    assert len(project.folders) == 12
    for folder in project.folders:
        said = (folder / "transcript.txt").read_text().splitlines()
        assert len(said) == 2
    assert all(len(folder.name) <= 89 for folder in project.folders)
    assert {folder.parent for folder in project.folders} == {run}


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_a_failure_shows_the_command_and_fails_the_run(
    project: Project, options: tuple[str, ...]
) -> None:
    project.test("""
        def test_wrong(e2e: E2eSession) -> None:
            e2e.run("echo first", comment="before it")
            expect(e2e.run("echo out; echo err >&2; exit 9")).to_succeed()
    """)
    done = project.pytest(*options)
    assert done.returncode == 1
    for part in (
        "echo out; echo err >&2; exit 9",
        "out",
        "err",
        "9",
        "$ echo first",
        "# before it",
    ):
        assert part in done.stdout, done.stdout
    assert "mngr_e2e/session.py" not in done.stdout
    assert project.result()["outcome"] == "failed"


def test_a_killed_pytest_leaves_what_was_seen_until_then(project: Project) -> None:
    project.test("""
        def test_long(e2e: E2eSession) -> None:
            e2e.run("echo one")
            e2e.run("echo two; echo partly >&2; exec sleep 1000", timeout=900)
    """)
    running = project.started()
    until(lambda: project.folders and "! partly" in project.transcript(), 60)
    running.kill()
    running.wait()
    result = project.result()
    assert result["outcome"] == "running"
    assert [command["exit_code"] for command in result["commands"]] == [0, None]
    assert "$ echo one\none\n" in project.transcript()
    assert "\ntwo\n" in project.transcript()


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_what_a_killed_pytest_ran_is_ended(
    project: Project, tmp_path: Path, options: tuple[str, ...]
) -> None:
    project.test(f"""
        def test_long(e2e: E2eSession) -> None:
            open("{tmp_path}/tests.pid", "w").write(f"{{os.getpid()}}\\n")
            e2e.run("setsid sh -c 'echo $$ > {tmp_path}/a.pid; sleep 1000' >/dev/null 2>&1 &")
            daemon = "echo $$ > {tmp_path}/b.pid; sleep 1000"
            e2e.run(f"(env -i HOME=$HOME setsid sh -c '{{daemon}}' >/dev/null 2>&1 &)")
            daemon = "echo $$ > {tmp_path}/d.pid; sleep 1000"
            e2e.run(f"(env -i setsid sh -c '{{daemon}}' >/dev/null 2>&1 &)")
            stubborn = 'trap "" TERM HUP; echo $$ > {tmp_path}/c.pid; while :; do sleep 1; done'
            e2e.run(stubborn, timeout=900)
    """)
    running = subprocess.Popen(
        project.argv(*options),
        cwd=project.root,
        env=project.environment(),
        stdout=subprocess.DEVNULL,
    )
    files = [tmp_path / f"{name}.pid" for name in ("a", "b", "c", "d", "tests")]
    until(lambda: all(path.exists() and path.read_text().endswith("\n") for path in files), 60)
    *commands, tests = [int(path.read_text()) for path in files]
    assert all(map(tree.alive, commands))
    os.kill(tests, signal.SIGKILL)  # with xdist it is the worker that runs them
    running.wait()
    until(lambda: not any(map(tree.alive, commands)), 60)


def test_a_crashed_worker_is_told_apart(project: Project) -> None:
    project.test("""
        def test_crash(e2e: E2eSession) -> None:
            e2e.run("echo one")
            os._exit(3)
    """)
    project.pytest("-n", "1")
    assert project.result()["outcome"] == "crashed"
    assert project.transcript() == "$ echo one\none\n"


def test_what_a_test_leaves_running_is_ended(project: Project, tmp_path: Path) -> None:
    project.test(f"""
        def test_leaves(e2e: E2eSession) -> None:
            e2e.run("setsid sh -c 'echo $$ > {tmp_path}/a.pid; sleep 100' >/dev/null 2>&1 &")
            daemon = "echo $$ > {tmp_path}/c.pid; sleep 100"
            e2e.run(f"(env -i HOME=$HOME setsid sh -c '{{daemon}}' >/dev/null 2>&1 &)")
            daemon = "echo $$ > {tmp_path}/d.pid; sleep 100"
            e2e.run(f"(env -i setsid sh -c '{{daemon}}' >/dev/null 2>&1 &)")
            e2e.start("echo $$ > {tmp_path}/b.pid; echo up; sleep 100").wait_for_output("up")
            for name in "abcd":
                expect(Path(f"{tmp_path}/{{name}}.pid")).eventually(60).to_contain("\\n")
    """)
    done = project.pytest("-W", "error")
    assert done.returncode == 0, done.stdout
    pids = [int((tmp_path / f"{name}.pid").read_text()) for name in "abcd"]
    assert not any(map(tree.alive, pids))


def test_a_setup_command_runs_before_each_test_and_its_failure_is_shown(project: Project) -> None:
    project.settings('setup = "cp $E2E_ROOT/seed . && pwd"\nenv = {GREETING = "hi {home}"}')
    (project.root / "seed").write_text("seeded\n")
    project.test("""
        def test_seed(e2e: E2eSession) -> None:
            assert e2e.run("cat seed").stdout == "seeded\\n"
            assert e2e.run("echo $GREETING").stdout == f"hi {e2e.home}\\n"
    """)
    assert project.pytest().returncode == 0
    (project.root / "seed").unlink()
    done = project.pytest()
    assert done.returncode == 1
    assert "setup of [tool.mngr_e2e] failed with exit code 1" in done.stdout
    assert "No such file" in done.stdout


def test_a_mistake_in_the_settings_names_the_nearest_key(project: Project) -> None:
    project.settings('setpu = "true"')
    project.test("def test_a(e2e): pass\n")
    done = project.pytest()
    assert done.returncode == 1
    assert "unknown key 'setpu' in [tool.mngr_e2e]; did you mean 'setup'?" in done.stdout


def test_setup_fills_in_places_and_an_unknown_placeholder_is_named(project: Project) -> None:
    project.settings("setup = \"cp {root}/seed {home}/copy && echo a | awk '{print}' > b\"")
    (project.root / "seed").write_text("seeded\n")
    project.test("""
        def test_seed(e2e: E2eSession) -> None:
            assert e2e.run("cat ~/copy b").stdout == "seeded\\na\\n"
    """)
    assert project.pytest().returncode == 0
    project.settings('setup = "cp {rot}/seed ."')
    done = project.pytest()
    assert done.returncode == 1
    told = "unknown placeholder '{rot}' in 'setup' of [tool.mngr_e2e]; known: {root}, {home}"
    assert told in done.stdout


def test_in_no_op_mode_nothing_runs(project: Project, tmp_path: Path) -> None:
    project.test(f"""
        def test_proves_nothing(e2e: E2eSession) -> None:
            expect(e2e.run("touch {tmp_path}/ran; exit 3")).to_succeed()
            e2e.start("touch {tmp_path}/ran").wait_for_output("ready")
            assert e2e.record("touch {tmp_path}/ran").stop() == 0
        def test_proves_something(e2e: E2eSession) -> None:
            assert e2e.run("echo hi").stdout == "hi\\n"
    """)
    project.pytest(MNGR_E2E_NOOP="1")
    results = project.results()
    assert results["test_proves_nothing"]["outcome"] == "passed"
    assert results["test_proves_something"]["outcome"] == "failed"
    assert all(result["noop"] for result in results.values())
    assert len(results["test_proves_nothing"]["commands"]) == 3
    assert not (tmp_path / "ran").exists()


def test_secrets_do_not_reach_the_artifacts(project: Project) -> None:
    project.settings("pass_env = ['SERVICE_TOKEN']\nredactions = ['id-[0-9]+', '\"x.*x\"']")
    project.test("""
        def test_secret(e2e: E2eSession) -> None:
            assert "tok-12345" in e2e.run("echo $SERVICE_TOKEN id-777").stdout
            e2e.run("echo $MY_PASSWORD open sesame", env={"MY_PASSWORD": "open sesame"})
            e2e.redact("told-later")
            e2e.run("echo told-later >&2")
    """)
    assert project.pytest(SERVICE_TOKEN="tok-12345").returncode == 0
    (folder,) = project.folders
    whole = "".join(path.read_text() for path in folder.iterdir())
    for secret in ("tok-12345", "id-777", "open sesame", "told-later"):
        assert secret not in whole
    assert "[SERVICE_TOKEN] [redacted]\n" in project.transcript()


def test_an_interrupted_test_ends_its_command_and_is_recorded(
    project: Project, tmp_path: Path
) -> None:
    project.test(f"""
        import signal, threading
        def test_interrupted(e2e: E2eSession) -> None:
            def stop(*_): raise TimeoutError
            def interrupt():
                expect(lambda: e2e.transcript.text).eventually(60).to_contain("\\nup\\n")
                os.kill(os.getpid(), signal.SIGALRM)
            signal.signal(signal.SIGALRM, stop)
            threading.Thread(target=interrupt).start()
            with pytest.raises(TimeoutError):
                e2e.run("echo $$ > {tmp_path}/pid; echo up; sleep 100", timeout=90)
            assert e2e.run("echo after").stdout == "after\\n"
    """)
    done = project.pytest("-W", "error")
    assert done.returncode == 0, done.stdout
    assert not tree.alive(int((tmp_path / "pid").read_text()))
    assert [command["exit_code"] for command in project.result()["commands"]] == [None, 0]
