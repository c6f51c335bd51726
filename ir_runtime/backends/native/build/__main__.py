"""Build libraries of kernels into the package: ``python -m ir_runtime.backends.native.build [TARGET ...]``.

The default is the best target of this processor. Libraries already built from the current sources are kept.
"""

from __future__ import annotations

import sys

from ....errors import IRError
from ..machine_code import FOLDER, file_of, find_target
from .library import build, host_target, is_current
from .source import CompileError
from .systems import LinkError, this_system

_OBJECTS = FOLDER.parents[3] / "out" / "kernels"


def main(names: list[str]) -> int:
    """Build the libraries of the named targets; return the exit code."""
    try:
        for target in map(find_target, names or [host_target().name]):
            system, path = this_system(target.family), file_of(target.name)
            if not is_current(path):
                print(f"building the kernels for {target.name}", file=sys.stderr)
                build(target.name, system, path, _OBJECTS / system.name / target.name)
            print(path)
    except (CompileError, LinkError, IRError) as reason:
        print(reason, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
