"""`python -m mngr`."""

from __future__ import annotations

import sys

from mngr.cli.app.main import main

if __name__ == "__main__":
    sys.exit(main())
