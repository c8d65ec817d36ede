"""Names, hashes and files that others rely on."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mngr_e2e import artifacts
from mngr_e2e.artifacts import ResultFile, TestRecord


@given(st.text())
def test_a_slug_is_a_file_name_and_says_its_node_id(node_id: str) -> None:
    found = artifacts.slug(node_id)
    assert re.fullmatch(r"[A-Za-z0-9._-]{0,80}-[0-9a-f]{8}", found)
    digest = hashlib.sha256(node_id.encode("utf-8", "surrogateescape")).hexdigest()
    assert found.endswith(digest[:8])


def test_a_slug_is_readable() -> None:
    found = artifacts.slug("tests/test_a.py::TestX::test_b[1 2]")
    assert found.startswith("tests-test_a.py-TestX-test_b-1-2--")


def test_a_run_id_is_its_time_and_four_digits() -> None:
    assert re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{4}", artifacts.new_run_id())


SOURCE = '''
def test_a(): pass

class TestX:
    @mark
    def test_a(self):
        """Doc."""
        assert 1
'''


def test_the_hash_of_a_test_changes_with_its_text_only(tmp_path: Path) -> None:
    path = tmp_path / "test_x.py"
    path.write_text(SOURCE)
    before = artifacts.source_sha256(path, "TestX.test_a")
    path.write_text(SOURCE.replace("def test_a(): pass", "def test_b(): return 7\n\n"))
    assert artifacts.source_sha256(path, "TestX.test_a") == before
    path.write_text(SOURCE.replace("@mark", "@other"))
    assert artifacts.source_sha256(path, "TestX.test_a") != before
    assert artifacts.source_sha256(path, "test_a") != before
    absent = artifacts.source_sha256(tmp_path / "none.py", "test_a")
    path.write_text("def (")
    assert artifacts.source_sha256(path, "test_a") == absent != before


def test_a_result_is_whole_json_at_every_moment(tmp_path: Path) -> None:
    file = ResultFile(tmp_path)
    record = TestRecord("a::b", "0" * 64, outcome="a long outcome, for now")
    for outcome in ("a long outcome, for now", "x", "passed", "a much longer outcome than before"):
        record.outcome = outcome
        file.write(record)
        assert json.loads((tmp_path / "result.json").read_text())["outcome"] == outcome
    file.close()
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_a_second_try_of_a_test_starts_with_an_empty_folder(tmp_path: Path) -> None:
    folder = artifacts.open_test(tmp_path, "a::b")
    (folder / "old.cast").write_text("{}")
    assert list(artifacts.open_test(tmp_path, "a::b").iterdir()) == []


def test_a_crash_before_a_test_has_its_file_leaves_nothing(tmp_path: Path) -> None:
    artifacts.mark_crashed(tmp_path, "tests/test_a.py::test_b")
    assert list(tmp_path.iterdir()) == []
