from __future__ import annotations

import sys

from jot.cli import main

sys.exit(main())
