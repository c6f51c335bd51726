"""Connect to a Dask scheduler, or start one."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from importlib.util import find_spec
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from .._util.child_process import safe_environment
from .._util.cores import parallelism
from ..errors import ExecutionError, InputError
from .model_source import ModelSource
from .needed import needed

__all__ = ["LOCAL_SCHEDULERS", "connect", "dashboard_of", "visible_to_workers"]

LOCAL_SCHEDULERS = ("local", "threads")
"""The names of the schedulers that are started on this machine."""

_TRIM_THRESHOLD = "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_"
"""Dask makes glibc return each freed array to the system at once; page faults then double the time of some models."""


_UNOBSERVED = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.gil.enabled": False,
}
"""Settings without a dashboard: Dask otherwise samples the stack of each process a hundred times a second for its pages."""


@contextmanager
def connect(scheduler: str = "local", workers: int | None = None) -> Iterator[Any]:
    """Yield a client of Dask's distributed scheduler.

    Args:
        scheduler: ``local`` for processes of this machine, ``threads`` for threads of this process, or the address of a
            running scheduler, such as ``tcp://host:8786``.
        workers: the number of processes or threads; by default, the number of cores.

    Raises:
        InputError: if the address is invalid, or does not answer.
        ExecutionError: if workers do not start.
    """
    distributed = needed("distributed", "a scheduler of Dask")
    if scheduler in LOCAL_SCHEDULERS:
        with _local_cluster(distributed, scheduler == "local", workers or parallelism()) as client:
            yield client
        return
    if "://" not in scheduler:
        raise InputError(
            f"unknown scheduler {scheduler!r}",
            hint="use local, threads, or an address such as tcp://host:8786",
        )
    try:
        client = distributed.Client(scheduler, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as reason:
        raise InputError(f"no scheduler answers at {scheduler}: {reason}") from None
    with (
        distributed.utils.silence_logging_cmgr(logging.CRITICAL),
        client,
    ):  # losses of workers are raised as errors
        yield client


@contextmanager
def _local_cluster(distributed: Any, processes: bool, workers: int) -> Iterator[Any]:
    """Yield a client of a new scheduler with workers, reachable from this machine only; Dask restarts killed workers."""
    import dask

    count = (
        {"n_workers": workers, "threads_per_worker": 1}
        if processes
        else {"n_workers": 1, "threads_per_worker": workers}
    )
    with (
        safe_environment(),
        dask.config.set(_settings()),
        _start_cluster(
            distributed, processes=processes, dashboard_address="127.0.0.1:0", scheduler_kwargs={"dashboard": _has_bokeh()},
            host="127.0.0.1" if processes else None, protocol=None if processes else "inproc://", silence_logs=50, **count,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        yield client


def _start_cluster(distributed: Any, **how: Any) -> Any:
    try:
        return distributed.LocalCluster(**how)
    except RuntimeError as reason:
        hint = "--scheduler threads starts no processes"
        raise ExecutionError(f"workers cannot be started here: {reason}", hint=hint) from reason


def _settings() -> dict[str, Any]:
    """Return Dask's settings for local clusters."""
    return {
        "distributed.logging.distributed": "critical",
        "distributed.comm.retry.count": 2,
        # How long a worker tries to fetch results from a killed worker.
        "distributed.comm.timeouts.connect": "10s",
        _TRIM_THRESHOLD: None,
        **({} if _has_bokeh() else _UNOBSERVED),
    }


def dashboard_of(client: Any) -> str:
    """Return the URL of the dashboard of a scheduler, or an empty string if it has none."""
    link = str(client.dashboard_link)
    is_remote = client.cluster is None
    return link if (_serves_page(link) if is_remote else _has_bokeh()) else ""


def _serves_page(link: str) -> bool:
    """Return whether a page may exist: False only if the server answers that it does not."""
    try:
        urlopen(Request(link, method="HEAD"), timeout=1).close()  # noqa: S310 - the address comes from the user's scheduler
    except HTTPError as answer:
        answer.close()
        return (
            answer.code != HTTPStatus.NOT_FOUND
        )  # 404 is the answer of --no-dashboard; a dashboard refuses HEAD in another way
    except (OSError, ValueError):
        return True  # a browser may reach an address that this process cannot
    return True


def _has_bokeh() -> bool:
    return find_spec("bokeh") is not None


def visible_to_workers(source: ModelSource) -> bool:
    """Return whether all workers of the current client have the file that a model was read from; true without a client."""
    if not find_spec("distributed"):
        return True
    from distributed import get_client

    client = None
    with suppress(ValueError):
        client = get_client()
    return client is None or all(client.run(_is_readable, source).values())


def _is_readable(source: ModelSource) -> bool:
    with suppress(InputError, OSError):
        source.check()
        return True
    return False
