"""Messages of worker processes: their pipes are not those of the libraries that they run."""

from __future__ import annotations

import pickle
import subprocess
import sys

WORKER = """
import sys
from ir_runtime._util.child_process import next_job, open_pipes, send

jobs, answers = open_pipes()
print("said by a library", flush=True)
read = sys.stdin.buffer.read()
while (job := next_job(jobs)) is not None:
    send(answers, (job, read))
"""


def test_libraries_read_nothing_and_print_no_answers() -> None:
    """A process that a library forks closes ``sys.stdin``, and would wait for the thread that reads jobs from it."""
    messages = b"".join(pickle.dumps(number) for number in (1, 2))
    done = subprocess.run([sys.executable, "-c", WORKER], input=messages, capture_output=True, check=True)
    assert done.stdout == b"".join(pickle.dumps((number, b""), pickle.HIGHEST_PROTOCOL) for number in (1, 2))
    assert done.stderr == b"said by a library\n"
