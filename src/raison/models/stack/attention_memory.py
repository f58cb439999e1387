"""Whether the matrices of eager attention fit into memory, checked before the first of them is made.

Fused attention needs memory in proportion to a text's length. Whoever reads or replaces attention, or follows it with
backward rules, needs all of its entries: the square of the length, in every head and layer.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from raison.core.errors import OutOfMemoryError

SMALL = 1 << 28
"""Below this number of bytes, free memory is not checked."""


class AttentionMemoryError(torch.OutOfMemoryError):
    """Attention would not fit; fewer texts at a time might."""


def check_attention_memory(states: Tensor, shape: Sequence[int], layers: int) -> None:
    """Raise an error of memory unless the attention of one pass fits.

    `states` is a tensor that enters a layer's attention; its rows belong to texts. `shape` is (texts, heads, queries,
    keys). With gradients every layer keeps two matrices until the backward pass, and without gradients one. Raises
    AttentionMemoryError for several texts, and OutOfMemoryError for a single one.
    """
    texts, heads, queries, keys = shape
    needed = texts * heads * queries * keys * states.element_size() * layers * (1 + torch.is_grad_enabled())
    if needed < SMALL:
        return
    free = free_bytes(states.device)
    if free is None or needed < free:
        return
    message = (
        f"reading the attention to {keys:,} tokens takes about {needed / 2**30:.1f} GiB ({heads} heads in {layers} "
        f"layers have {queries:,} x {keys:,} numbers each), and {free / 2**30:.1f} GiB are free. Shorten the text, or "
        "use a method that does not read attention, such as integrated_gradients or occlusion."
    )
    raise OutOfMemoryError(message) if texts == 1 else AttentionMemoryError(message)


def free_bytes(device: torch.device) -> int | None:
    """Free memory of a device; None if it is unknown."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if device.type != "cpu":
        return None
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
    except OSError:
        return None
    return int(lines["MemAvailable"].split()[0]) * 1024
