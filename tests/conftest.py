"""The suite runs in several processes; each takes its share of the processor's cores."""

import os

import torch

_WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
if _WORKERS > 1:
    _THREADS = max(1, (os.cpu_count() or 1) // _WORKERS)
    torch.set_num_threads(_THREADS)
    # Processes that a test starts must round as it does itself: sums depend on the number of threads.
    os.environ["OMP_NUM_THREADS"] = str(_THREADS)
