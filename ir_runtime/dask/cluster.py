"""Connect to a scheduler of Dask, or start one."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from importlib.util import find_spec
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from ..errors import InputError
from .model_source import ModelSource
from .needed import needed

__all__ = ["HERE", "connected", "dashboard_of", "sees_everywhere"]

HERE = ("local", "threads")
"""The schedulers that are started on this machine."""

_TRIM_THRESHOLD = "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_"
"""Dask has glibc return each freed array to the system at once: models then take up to twice as long, for page faults."""


@contextmanager
def connected(scheduler: str = "local", workers: int | None = None) -> Iterator[Any]:
    """Yield a client of Dask's distributed scheduler.

    Args:
        scheduler: ``local`` for processes of this machine, ``threads`` for threads of this process, or the address
            of a scheduler that runs: ``tcp://host:8786``.
        workers: how many processes or threads; by default as many as there are cores.

    Raises:
        InputError: if the address is not one, or does not answer.
    """
    distributed = needed("distributed", "a scheduler of Dask")
    if scheduler in HERE:
        with _own(distributed, scheduler == "local", workers or len(os.sched_getaffinity(0))) as client:
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
    with distributed.utils.silence_logging_cmgr(logging.CRITICAL), client:  # what is lost is raised
        yield client


@contextmanager
def _own(distributed: Any, processes: bool, workers: int) -> Iterator[Any]:
    """Start a scheduler with workers on this machine, which only this machine can reach."""
    import dask

    # A worker that is killed is started again; its tasks go to others.
    count = (
        {"n_workers": workers, "threads_per_worker": 1}
        if processes
        else {"n_workers": 1, "threads_per_worker": workers}
    )
    settings = {
        "distributed.logging.distributed": "critical",
        "distributed.comm.retry.count": 2,
        # Until then a worker tries to connect to one that was killed, whose results it needs.
        "distributed.comm.timeouts.connect": "10s",
        _TRIM_THRESHOLD: None,
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            processes=processes, dashboard_address="127.0.0.1:0", scheduler_kwargs={"dashboard": _draws_dashboard()},
            host="127.0.0.1" if processes else None, protocol=None if processes else "inproc://", silence_logs=50, **count,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        yield client


def dashboard_of(client: Any) -> str:
    """Return the address of the dashboard of a scheduler; empty if it has none."""
    link = str(client.dashboard_link)
    is_remote = client.cluster is None
    return link if (_serves_page(link) if is_remote else _draws_dashboard()) else ""


def _serves_page(link: str) -> bool:
    """Tell whether a page may be there: false only if its server says that it is not."""
    try:
        urlopen(Request(link, method="HEAD"), timeout=1).close()  # noqa: S310 - the user's scheduler says the address
    except HTTPError as answer:
        answer.close()
        return answer.code != HTTPStatus.NOT_FOUND  # that of --no-dashboard; one that draws refuses HEAD
    except (OSError, ValueError):
        return True  # a browser may reach what this process does not
    return True


def _draws_dashboard() -> bool:
    return find_spec("bokeh") is not None


def sees_everywhere(source: ModelSource) -> bool:
    """Whether all workers of the current client see the file of a model; true without a client."""
    if not find_spec("distributed"):
        return True
    from distributed import get_client

    client = None
    with suppress(ValueError):
        client = get_client()
    return client is None or all(client.run(_sees, source).values())


def _sees(source: ModelSource) -> bool:
    with suppress(InputError, OSError):
        source.check()
        return True
    return False
