"""Install the releases, ask them, and write the table: ``python -m releases FOLDER``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ir_runtime.releases.release import WHEELS

from .ask import ask, install
from .probes import probe_lines
from .table import ANSWERS, TABLE, collect, derive, save, source


def main(folder: Path) -> None:
    """Write the answers and the table; releases installed in the folder are reused."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = list(probe_lines())
    probes = list(map(json.loads, lines))
    line_of = dict(zip(map(id, probes), lines, strict=True))

    def answers_of(release: str, asked: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        print(f"OpenVINO {release} is asked about {len(asked):,} models", flush=True)
        install(release, folder / release)
        return ask(folder / release, [line_of[id(probe)] for probe in asked])

    asked = list(WHEELS)
    answers = collect(probes, asked, answers_of)
    save(answers, asked)
    TABLE.write_text(source(derive(answers, asked[0])), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", TABLE], check=True)
    print(f"wrote {ANSWERS} and {TABLE}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
