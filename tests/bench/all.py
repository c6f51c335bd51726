"""All measurements against OpenVINO: networks, a language model, dynamic shapes, chains, calls, streams, startup.

Names select rows by their first column; by default, all are measured.
"""

from __future__ import annotations

import calls
import chain
import dynamic
import language
import models
import start
import streams
from shared import program

if __name__ == "__main__":
    program(models.PART, language.PART, dynamic.PART, chain.PART, calls.PART, streams.PART, start.PART)()
