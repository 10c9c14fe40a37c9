"""What orders to engines take, block by block: of the engines, of L2 and of DRAM. No schedule changes it."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from cuasmrl.gpu.emulator.events import Event
from cuasmrl.gpu.timing.async_records import Order
from cuasmrl.gpu.timing.bulk_copies import KILOBYTE
from cuasmrl.gpu.timing.code import Int
from cuasmrl.gpu.timing.model import Model
from cuasmrl.gpu.timing.records import SIXTEENTH, Access, Job, Row


class Bulk(IntEnum):
    ENGINE = 0
    """Sixteenths of a cycle."""
    AWAITED = 1
    """Those of copies for whose phase somebody waits: all of them are done before the block ends."""
    L2 = 2
    """Parts of a cycle while all SMs are busy."""
    DRAM = 3
    TENSOR = 4
    """Sixteenths of a cycle that products take (tcgen05)."""
    TENSOR_AWAITED = 5


def bulk_of(model: Model) -> Int:
    """A row for each traced block."""
    work, rates = model.work, model.machine.share.full
    found = np.zeros((int(work[Job.BLOCKS]), len(Bulk)), np.int64)
    orders = work[work[Job.ORDERS] :].reshape(-1, Order.WIDTH)
    is_product = orders[:, Order.KIND] == Event.PRODUCT
    products, copies = orders[is_product], orders[~is_product]
    rows = model.code.rows[copies[:, Order.INSTRUCTION]].astype(np.int64)
    access, inwards = copies[:, Order.ACCESS], copies[:, Order.KIND] == Event.COPY_IN
    by_bytes = rows[:, Row.INTERVAL] * copies[:, Order.BYTES] // KILOBYTE
    engine = np.maximum(by_bytes, work[access + Access.LINES] * rows[:, Row.TURNS])
    amounts = {
        Bulk.ENGINE: engine,
        Bulk.AWAITED: engine * copies[:, Order.AWAITED],
        Bulk.L2: work[access + Access.SECTORS] * np.where(inwards, rates.l2_read, rates.l2_written),
        Bulk.DRAM: work[access + Access.FRESH] * np.where(inwards, rates.dram_read, rates.dram_written),
    }
    for name, amount in amounts.items():
        np.add.at(found[:, name], copies[:, Order.BLOCK], amount)
    rows = model.code.rows[products[:, Order.INSTRUCTION]].astype(np.int64)
    tensor = rows[:, Row.INTERVAL] * products[:, Order.COLUMNS]
    tensor = np.maximum(tensor, SIXTEENTH * (products[:, Order.BYTES] // model.machine.shared_bytes))
    np.add.at(found[:, Bulk.TENSOR], products[:, Order.BLOCK], tensor)
    np.add.at(found[:, Bulk.TENSOR_AWAITED], products[:, Order.BLOCK], tensor * products[:, Order.AWAITED])
    return found
