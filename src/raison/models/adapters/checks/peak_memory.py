"""The peak memory of a computation."""

from collections.abc import Iterable
from typing import Any, final

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

HELD = 1.6
"""Bytes that a process holds for each byte of its live tensors: 1.3 to 1.6 (benchmarks/long_prompts.py)."""


@final
class PeakMemory(TorchDispatchMode):
    """The peak number of bytes of live tensors that a computation has made.

    Temporary memory inside an operation is not counted, nor memory that the allocator keeps for later.
    """

    def __init__(self, given: Iterable[Tensor] = ()) -> None:
        """`given`, such as the weights, is not counted, nor are views of it."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak = 0
        self._given = {tensor.untyped_storage().data_ptr() for tensor in given}
        self._known: dict[int, tuple[StorageWeakRef, int]] = {}
        self._total = 0
        """The known tensors, some of which may have been freed."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(output):
            if isinstance(leaf, Tensor):
                storage = leaf.untyped_storage()
                if storage.data_ptr() not in self._given:
                    self._total += storage.nbytes() - self._known.get(storage._cdata, (None, 0))[1]
                    self._known[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        if self._total > self.peak:
            self._known = {key: entry for key, entry in self._known.items() if not entry[0].expired()}
            self._total = sum(size for _, size in self._known.values())
            self.peak = max(self.peak, self._total)
        return output
