#!/usr/bin/env python3
"""Make the demo's jot, with known defects: scripts/plant_defects.py OUT_DIR."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from mngr_tmr.cli.planting import main

if __name__ == "__main__":
    sys.exit(main())
