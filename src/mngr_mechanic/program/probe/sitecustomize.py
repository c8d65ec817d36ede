"""Start the tracer in every Python that a traced test starts; Python finds this file first."""

from __future__ import annotations

import os
import sys

if os.environ.get("MECHANIC_TRACE"):
    import mechanic_trace  # type: ignore[import-not-found]

    mechanic_trace.start(os.environ["MECHANIC_TRACE"])


def _shadowed() -> None:
    """Run the file of this name that the installation may have."""
    import _frozen_importlib_external as files

    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path) != here]
    spec = files.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.origin:
        with open(spec.origin, "rb") as file:
            code = compile(file.read(), spec.origin, "exec")
        exec(code, {"__name__": "sitecustomize", "__file__": spec.origin})  # noqa: S102


_shadowed()
