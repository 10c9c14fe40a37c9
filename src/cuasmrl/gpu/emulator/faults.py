"""What can go wrong in a kernel that runs: errors that name the place, the thread and the address."""

from cuasmrl.binary.sass import Instruction
from cuasmrl.errors import CuasmrlError


class UnsupportedError(Exception):
    """An instruction the emulator cannot execute, found when a kernel is loaded; the text says why."""


class LaneFault(Exception):  # noqa: N818  (a fault of the emulated program, not of this one)
    """A fault of one thread, raised where only its position in the slab is known."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position
        """Index of the thread in the slab, counting lanes first, then warps, then blocks."""


class AssertionFault(LaneFault):
    """An assertion of the kernel failed."""


class Fault(CuasmrlError):  # noqa: N818
    """The emulated kernel did something a GPU would not survive, or a sanitizer would report."""

    def __init__(
        self,
        reason: str,
        kernel: str,
        instruction: Instruction | None = None,
        block: tuple[int, int, int] | None = None,
        thread: tuple[int, int, int] | None = None,
    ) -> None:
        self.reason = reason
        self.kernel = kernel
        self.instruction = instruction
        self.block = block
        self.thread = thread
        where = f"Kernel {kernel}"
        if instruction is not None:
            where += f" at {instruction.address:#06x} ({instruction.text})"
        if block is not None:
            where += f", block {block}"
        if thread is not None:
            where += f", thread {thread}"
        super().__init__(f"{where}: {reason}.")

    def __reduce__(self) -> tuple[type["Fault"], tuple[object, ...]]:
        """Processes hand errors to each other; the text alone would not make one."""
        return type(self), (self.reason, self.kernel, self.instruction, self.block, self.thread)


class DeviceAssert(Fault, RuntimeError):  # noqa: N818
    """An assertion of the kernel failed: a RuntimeError, as frameworks make of the driver's error."""
