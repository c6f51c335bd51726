"""How many workers Dask's scheduler keeps busy, by simulation.

One scheduler, with the client, hands out one task at a time; each worker computes one at a time, and has a few that are
ready. Both costs are measured; networks and disks are assumed to keep up.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

from ir_runtime.dask.job import TASK_SECONDS, TASKS_PER_THREAD

WORKERS = (1, 2, 10, 100, 1_000)


@dataclass(frozen=True)
class Costs:
    """Seconds of a task, beside the model.

    Args:
        task: in all, with one worker.
        scheduling: CPU time of the scheduler and the client.
    """

    task: float
    scheduling: float


def simulated(workers: int, task: float, scheduling: float, tasks: int) -> float:
    """Return the seconds that tasks take.

    Args:
        workers: each computes one task at a time, and has `TASKS_PER_THREAD` in all.
        task: seconds of a task at its worker.
        scheduling: seconds of the scheduler, and of the client, for a task; one at a time.
        tasks: how many there are.
    """
    ends = [(0.0, worker) for worker in range(workers) for _ in range(TASKS_PER_THREAD)]
    free = [0.0] * workers
    now = 0.0
    heapq.heapify(ends)
    for _ in range(tasks):
        ready, worker = heapq.heappop(ends)
        now = max(now, ready) + scheduling
        free[worker] = max(free[worker], now) + task
        heapq.heappush(ends, (free[worker], worker))
    return max(free)


def print_simulation(row: float, costs: Costs, measured: Mapping[int, float]) -> None:
    """Print the rows a second of many workers, beside those of real ones.

    Args:
        row: seconds of the model for a row.
        costs: of a task, which has as many rows as take `TASK_SECONDS`.
        measured: rows a second of real workers, by their number.
    """
    rows = max(1, int(TASK_SECONDS / row))
    task = rows * row + max(costs.task - costs.scheduling, 0.0)
    print(f"  simulated, {rows} rows a task: workers, rows/s, of what they could, measured")
    for workers in WORKERS:
        tasks = max(200, 50 * workers)
        rate = tasks * rows / simulated(workers, task, costs.scheduling, tasks)
        real = f"{measured[workers]:10.1f}" if workers in measured else ""
        print(f"  {workers:6} {rate:12.1f} {rate * row / workers:8.1%} {real}")
