"""Listings written by hand: an instruction a line, control bits in front, as `cuasmrl disasm` prints them."""

import re

from cuasmrl.binary.cubin import Kernel, Section
from cuasmrl.binary.sass import Control, Listing
from cuasmrl.binary.sass.instruction import parse_instruction

_LINE = re.compile(
    r"B(?P<waits>[-0-5]{6}):R(?P<read>[-0-5]):W(?P<write>[-0-5]):(?P<yield>[-Y]):S(?P<stall>\d\d)\s+(?P<text>.+)"
)
_LABEL = re.compile(r"(\.L\w+):$")


def control(text: str) -> Control:
    match = _LINE.match(text + " NOP")
    assert match is not None, text
    return _control(match)


def _control(match: re.Match[str]) -> Control:
    def barrier(name: str) -> int | None:
        return None if match[name] == "-" else int(match[name])

    return Control(
        stall=int(match["stall"]),
        yield_=match["yield"] == "Y",
        write_barrier=barrier("write"),
        read_barrier=barrier("read"),
        wait_mask=sum(1 << int(k) for k in match["waits"] if k != "-"),
        reuse=0,
    )


def listing(text: str, arch: int = 90, registers: int = 64) -> Listing:
    """A kernel from hand-written lines; words differ from each other but encode only the control bits."""
    lines: list[re.Match[str]] = []
    labels: dict[str, int] = {}
    for raw in text.strip().splitlines():
        line = raw.strip()
        if label := _LABEL.match(line):
            labels[label[1]] = 16 * len(lines)
        else:
            match = _LINE.match(line)
            assert match is not None, line
            lines.append(match)
    words = [_control(m).encode(index.to_bytes(4, "little") + bytes(12)) for index, m in enumerate(lines)]
    instructions = tuple(
        parse_instruction(index, word, match["text"].strip(), arch, registers, labels)
        for index, (word, match) in enumerate(zip(words, lines, strict=True))
    )
    kernel = Kernel(
        name="by_hand",
        arch=arch,
        text=Section(1, ".text.by_hand", 0, 16 * len(words), 0),
        words=tuple(words),
        registers=registers,
        shared_bytes=0,
        parameters=(),
        parameter_base=0,
        records=(),
        entry_points=((0, "by_hand"),),
        has_relocations=False,
    )
    return Listing(kernel, instructions)
