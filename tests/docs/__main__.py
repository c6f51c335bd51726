"""Build the site: ``make docs``."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.build import build

print(f"file://{build(Path(sys.argv[1]).resolve())}/index.html")
