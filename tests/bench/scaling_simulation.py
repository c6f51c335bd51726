"""Simulation of Dask's scheduler: how many workers it can keep busy.

One scheduler, with the client, assigns one task at a time; each worker computes one at a time, and has a few ready. Both costs
are measured; networks and disks are assumed to keep up.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

from ir_runtime.dask.job import TASK_SECONDS, TASKS_PER_THREAD

WORKERS = (1, 2, 10, 100, 1_000)


@dataclass(frozen=True)
class Costs:
    """Seconds of a task, without the model.

    Args:
        task: in total, with one worker.
        scheduling: CPU time of the scheduler and the client.
    """

    task: float
    scheduling: float


def simulated(workers: int, task: float, scheduling: float, tasks: int) -> float:
    """Return the simulated seconds of a number of tasks.

    Args:
        workers: each computes one task at a time, and has `TASKS_PER_THREAD` in total.
        task: seconds of a task at its worker.
        scheduling: seconds of the scheduler and the client per task, one at a time.
        tasks: the number of tasks.
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
    """Print the rows per second of many workers, next to those of real ones.

    Args:
        row: seconds of the model per row.
        costs: of a task, whose rows take `TASK_SECONDS`.
        measured: rows per second of real workers, by their number.
    """
    rows = max(1, int(TASK_SECONDS / row))
    task = rows * row + max(costs.task - costs.scheduling, 0.0)
    print(f"  simulated, {rows} rows a task: workers, rows/s, of what they could, measured")
    for workers in WORKERS:
        tasks = max(200, 50 * workers)
        rate = tasks * rows / simulated(workers, task, costs.scheduling, tasks)
        real = f"{measured[workers]:10.1f}" if workers in measured else ""
        print(f"  {workers:6} {rate:12.1f} {rate * row / workers:8.1%} {real}")
