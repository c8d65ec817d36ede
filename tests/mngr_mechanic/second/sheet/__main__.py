# mypy: ignore-errors
from __future__ import annotations

import sys

from sheet.cli import main

sys.exit(main(sys.argv[1:]))
