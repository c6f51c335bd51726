"""How numba lowers functions of kernels to LLVM IR: with few slots on the stack, which LLVM would have to turn into values.

Numba gives a slot to each variable that is assigned twice, or read in another block, clears it first, and loads what it
holds before it stores. Here, a variable that is assigned once is a value wherever that is known.
"""

from __future__ import annotations

from collections import defaultdict

from llvmlite import ir
from numba.core import analysis, lowering, typed_passes
from numba.core import ir as numba_ir
from numba.core.compiler_machinery import register_pass

__all__ = ["KernelLowering"]


class _Lower(lowering.Lower):
    """Lowers a function whose variables hold numbers, which are never released."""

    def emit_environment_object(self) -> None:
        """Emit nothing: kernels need no Python objects."""

    def _find_singly_assigned_variable(self) -> None:
        """Find the variables that are values: their only assignment comes before each use."""
        places, uses, unknown = _assignments_and_uses(self.blocks)
        dominators = analysis.compute_cfg_from_blocks(self.blocks).dominators()
        self._singly_assigned_vars = {
            name
            for name, found in places.items()
            if len(found) == 1
            and name not in unknown
            and all(found[0] in dominators[use] and found[0] <= use for use in uses[name])
        }
        self._blk_local_varmap: dict[str, ir.Value] = {}

    def storevar(self, value: ir.Value, name: str, argidx: int | None = None) -> None:
        """Keep a value, or store it in the slot of a variable."""
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))

    def alloca_lltype(self, name: str, lltype: ir.Type, datamodel: object = None) -> ir.Value:
        """Return a slot."""
        with self.builder.goto_entry_block():
            return self.builder.alloca(lltype, name=name)


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(typed_passes.NativeLowering):
    """Numba's pass, with the class above."""

    _name = "kernel_lowering"

    @property
    def lowering_class(self) -> type[_Lower]:
        """Return the class that lowers a function."""
        return _Lower


def _assignments_and_uses(
    blocks: dict[int, numba_ir.Block],
) -> tuple[dict[str, list[int]], dict[str, set[int]], set[str]]:
    """Return where variables are assigned and used, and which ones are used before they are assigned in the same block."""
    places, uses, unknown = defaultdict(list), defaultdict(set), set()
    for offset, block in blocks.items():
        used: set[str] = set()
        for step in block.body:
            target = step.target.name if isinstance(step, numba_ir.Assign) else None
            used |= {variable.name for variable in step.list_vars() if variable.name != target}
            if target is not None:
                places[target].append(offset)
                unknown |= used & {target}
        for name in used:
            uses[name].add(offset)
    return places, uses, unknown
