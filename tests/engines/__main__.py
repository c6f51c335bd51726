"""Record the behavior of runtimes at the decisions of operations: ``make engines``, or ``python -m engines CORPUS.zip``.

It runs the cases of a corpus that cite decisions, and writes the record that pages of operations show:
``ir_runtime/ops/_engines.json``.
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

from engines.record import PATH, text
from ir_runtime.conformance.corpus import Corpus


def main() -> None:
    """Write the record."""
    today = datetime.datetime.now(datetime.UTC).date()
    corpus = Corpus(Path(sys.argv[1]))
    PATH.write_text(text(corpus, corpus.cases, today), encoding="utf-8")
    print(f"wrote {PATH}")


if __name__ == "__main__":
    main()
