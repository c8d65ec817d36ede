"""Options with which pytest starts three times as fast, for tests that start it.

These plugins come with other packages, are loaded by every pytest, and take longer than the rest.
"""

from __future__ import annotations

OPTIONS = [
    word for name in ("hypothesispytest", "anyio", "platformdirs") for word in ("-p", f"no:{name}")
]
