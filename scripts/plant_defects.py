#!/usr/bin/env python3
"""Make the demo's jot, with known defects: scripts/plant_defects.py OUT_DIR."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from mngr_tmr.cli.planting import CannotPlant, plant


def main() -> int:
    parser = argparse.ArgumentParser(description="Make a jot with known defects.")
    parser.add_argument("out", type=Path, metavar="OUT_DIR", help="a new or empty directory")
    try:
        print(json.dumps(plant(parser.parse_args().out), indent=2))
    except CannotPlant as error:
        print(f"plant_defects: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
