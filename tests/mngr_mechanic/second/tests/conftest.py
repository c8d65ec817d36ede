# mypy: ignore-errors
from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mngr_e2e import E2eSession

FOOD = """name,kind,price,stock
milk,drink,1.20,30
Bread,bakery,2.50,12
tea,drink,3.00,7
apple,fruit,0.40,120
pear,fruit,0.55,80
"""


@pytest.fixture(autouse=True)
def sheet(e2e: E2eSession) -> None:
    """`sheet` runs this directory's package; `food.csv` is there to work on."""
    program = e2e.home / "bin" / "sheet"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sheet "$@"\n')
    program.chmod(0o755)
    e2e.env["PATH"] = f"{program.parent}:{e2e.env['PATH']}"
    e2e.env["PYTHONPATH"] = str(Path(__file__).parents[1])
    (e2e.work / "food.csv").write_text(FOOD)
