"""Everything that is measured against OpenVINO: networks, kinds of networks, a language model, dynamic shapes, chains, streams, starts.

Names choose rows by their first column; without any, all are measured.
"""

from __future__ import annotations

import chain
import dynamic
import kinds
import language
import models
import start
import streams
from shared import program

if __name__ == "__main__":
    program(models.PART, kinds.PART, language.PART, dynamic.PART, chain.PART, streams.PART, start.PART)()
