"""What bulk copies take, block by block: of their engine, of L2 and of DRAM. No schedule changes it."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from cuasmrl.gpu.timing.async_records import BulkCopy
from cuasmrl.gpu.timing.bulk_copies import KILOBYTE
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.model import Model
from cuasmrl.gpu.timing.records import Access, Job, Row


class Bulk(IntEnum):
    ENGINE = 0
    """Sixteenths of a cycle."""
    AWAITED = 1
    """Those of copies for whose phase somebody waits: all of them are done before the block ends."""
    L2 = 2
    """Parts of a cycle while all SMs are busy."""
    DRAM = 3


def bulk_of(model: Model) -> Int:
    """A row for each traced block."""
    work, rates = model.work, model.machine.share.full
    found = np.zeros((int(work[Job.BLOCKS]), len(Bulk)), np.int64)
    copies = work[work[Job.COPIES] :].reshape(-1, BulkCopy.WIDTH)
    rows = model.code.rows[copies[:, BulkCopy.INSTRUCTION]].astype(np.int64)
    access, inwards = copies[:, BulkCopy.ACCESS], copies[:, BulkCopy.INWARDS] == 1
    by_bytes = rows[:, Row.INTERVAL] * copies[:, BulkCopy.BYTES] // KILOBYTE
    engine = np.maximum(by_bytes, work[access + Access.LINES] * rows[:, Row.TURNS])
    amounts = {
        Bulk.ENGINE: engine,
        Bulk.AWAITED: engine * copies[:, BulkCopy.AWAITED],
        Bulk.L2: work[access + Access.SECTORS] * np.where(inwards, rates.l2_read, rates.l2_written),
        Bulk.DRAM: work[access + Access.FRESH] * np.where(inwards, rates.dram_read, rates.dram_written),
    }
    for name, amount in amounts.items():
        np.add.at(found[:, name], copies[:, BulkCopy.BLOCK], amount)
    return found
