"""Check that the installed torch and torchvision work together: ``python tests/harness/check_torch.py`` (make zoo, make clients).

The compiled operators of torchvision load only with the torch that they were built for. pip does not know which: it may
install the two from different indexes, and then the first import fails.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

__all__ = ["import_error", "main"]

# Imports both, and runs a compiled operator: without its library, torchvision may import and fail at the first call.
PROGRAM = """
import torch, torchvision
torchvision.ops.nms(torch.zeros(1, 4), torch.zeros(1), 0.5)
"""


def import_error() -> str | None:
    """Return why torch and torchvision cannot be imported together; ``None`` if they can."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"Python ended with status {done.returncode}"


def installed(package: str) -> str:
    """Return a package's name and version, or a note that it is missing."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"


def main() -> None:
    """Exit with a message unless torch and torchvision work together."""
    if (reason := import_error()) is None:
        return
    sys.exit(
        f"torch and torchvision do not work together in {sys.prefix}\n"
        f"  found: {installed('torch')} and {installed('torchvision')}: {reason}\n"
        "  expected: both built for each other, as those on PyPI are\n"
        "  what to do: `pip config list` shows the folders and indexes that pip takes packages from (find-links, index-url,\n"
        "    extra-index-url); it prefers a build such as 2.14.1+cpu there to the one of PyPI. Offer the torchvision of the same\n"
        "    build, too, or install both from PyPI, then call make again:\n"
        f"    {sys.executable} -m pip uninstall --yes torch torchvision\n"
        "    export PIP_CONFIG_FILE=/dev/null PIP_FIND_LINKS= PIP_INDEX_URL= PIP_EXTRA_INDEX_URL="
    )


if __name__ == "__main__":
    main()
