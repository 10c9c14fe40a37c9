"""Python runs this file when it starts with our folder in PYTHONPATH; see `bootstrap`."""

import os
import sys


def _prepare() -> None:
    try:
        from cuasmrl.deploy.triton.bootstrap import prepare
    except ImportError:
        # Another Python, which knows nothing of us and shall not be bothered.
        return
    prepare()


def _run_the_next() -> None:
    """A file of this name that others rely on would have been run in our place."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    others = [place for place in sys.path if os.path.abspath(place) != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_prepare()
_run_the_next()
