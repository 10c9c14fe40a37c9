"""The full proof of an entry, by the checker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cuasmrl.binary.cubin import Cubin
from cuasmrl.checker import Checker, Refusal
from cuasmrl.deploy.store.code import read_code
from cuasmrl.deploy.store.entry import Entry
from cuasmrl.deploy.store.packing import DamagedError


def prove(entry: Entry) -> Entry:
    """The entry with certificates made here and now; raises if it does not deserve them."""
    what = f"entry {entry.key[:12]}"
    code = read_code(entry.original)
    if (entry.key, entry.arch, entry.kernels) != (code.key, code.arch, tuple(code.kernels)):
        raise DamagedError(f"{what} is not one of its original: key, chip or kernels differ")
    original = Cubin.parse(entry.original, f"the original of {what}")
    optimised = Cubin.parse(entry.optimised, f"the optimised cubin of {what}")
    try:
        certificate = Checker(original).check(optimised)
    except Refusal as refusal:
        raise DamagedError(f"{what} is refused by the checker ({refusal.rule}): {refusal}") from refusal
    found = _as_json(certificate.as_dict())
    for given in map(_as_json, entry.certificates.values()):
        # One by older rules is renewed, whatever it says.
        if given.get("checker") == certificate.checker and given != found:
            raise DamagedError(f"{what} comes with a certificate that is not the one the checker gives it")
    return replace(entry, certificates=dict.fromkeys(entry.kernels, found))


def _as_json(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON gives it back, so that it can be compared."""
    found: dict[str, Any] = json.loads(json.dumps(certificate))
    return found
