"""Memory: what large operations free is kept for the next ones."""

import platform
from pathlib import Path
from statistics import median

import pytest
import torch

from dear_plugin._batches import ROOM, keep_room
from dear_plugin.benchmark.meter import in_fresh_process

resource = pytest.importorskip("resource", reason="page faults are counted on Unix")

CELLS, TENSORS, ROUNDS = 1 << 18, 8, 20
PAGES = TENSORS * CELLS * 4 // resource.getpagesize()


def faults(keep: bool) -> float:
    """Page faults a round, each of which fills tensors of one MiB and frees them all."""
    if keep:
        keep_room()
    counts = []
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        held = [torch.ones(CELLS) for _ in range(TENSORS)]
        del held
        counts.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return median(counts)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_pages_are_not_faulted_in_anew(monkeypatch):
    # Dask leaves its own thresholds behind in the environment, from which glibc does not learn.
    for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_"):
        monkeypatch.delenv(name, raising=False)
    assert in_fresh_process(faults, True) < PAGES / 100


def grown() -> int:
    """How many bytes of this process lie in memory that did not before."""
    pages = [int(Path("/proc/self/statm").read_text().split()[1])]
    keep_room()
    pages.append(int(Path("/proc/self/statm").read_text().split()[1]))
    return (pages[1] - pages[0]) * resource.getpagesize()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux says what lies in memory")
def test_by_itself_it_takes_no_memory():
    assert in_fresh_process(grown) < ROOM / 10
