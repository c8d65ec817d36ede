"""Found first on PYTHONPATH by every Python that a traced test starts."""

from __future__ import annotations

import os
import sys

if os.environ.get("MECHANIC_TRACE"):
    import mechanic_trace  # type: ignore[import-not-found]

    mechanic_trace.start()


def _shadowed() -> None:
    """The installation may have a file of this name too; it runs as if we were not here."""
    import _frozen_importlib_external as files

    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path) != here]
    spec = files.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.origin:
        with open(spec.origin, "rb") as file:
            code = compile(file.read(), spec.origin, "exec")
        exec(code, {"__name__": "sitecustomize", "__file__": spec.origin})  # noqa: S102


_shadowed()
