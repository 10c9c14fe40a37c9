"""The store: results that compilers can be given, found by the code they replace."""

from __future__ import annotations

import os
import sys

from cuasmrl.deploy.store.contract import check_contract
from cuasmrl.deploy.store.packing import DamagedError, UnusableError, unpack
from cuasmrl.deploy.store.shelf import Shelf, is_key
from cuasmrl.errors import CuasmrlError

# Whatever only writers need is imported where it is used: readers start often and must start fast.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from cuasmrl.deploy.store.archive import Imported
    from cuasmrl.deploy.store.entry import Entry
    from cuasmrl.deploy.store.inspection import Inspected
    from cuasmrl.deploy.store.pending import Recorded

    Progress = Callable[[int, int], None]

LOCATION = "CUASMRL_STORE"


class Store:
    """Files below one directory; making the object touches none of them."""

    def __init__(self, root: Path | str | None = None) -> None:
        self.shelf = Shelf(default_root() if root is None else os.path.abspath(os.fspath(root)))

    def __repr__(self) -> str:
        return f"Store({self.shelf.root!r})"

    @property
    def root(self) -> Path:
        from pathlib import Path

        return Path(self.shelf.root)

    @property
    def epoch(self) -> str:
        """Changes exactly when a visible entry does; "empty" without any. Equal stores have equal epochs."""
        return self.shelf.epoch()

    def put(self, entry: Entry) -> Entry:
        """Prove an entry and keep it in place of the one before; what returns is what is stored.

        The code it is for waits no longer, if it was recorded.
        """
        from cuasmrl.deploy.store.proof import prove

        proved = prove(entry)
        self.keep(proved)
        self.forget_recorded(proved.key)
        return proved

    def keep(self, entry: Entry) -> None:
        """Make an entry visible that has been proved."""
        from cuasmrl.deploy.store.change import changing

        data = entry.packed()
        check_contract(unpack(data, entry.key), entry.key)
        with changing(self.shelf) as change:
            change.put(entry.key, data)

    def find(self, key: str) -> Entry | None:
        """The entry of that key, if it can be used; a damaged one is set aside and reported."""
        try:
            return self.examined(key)
        except DamagedError as error:
            _report(f"entry {key[:12]} of the store {self.shelf.root} is damaged: {error}")
        except UnusableError as error:
            _report(f"entry {key[:12]} of the store {self.shelf.root} is not used: {error}")
        return None

    def examined(self, key: str) -> Entry | None:
        """As `find`, but raises where an entry cannot be used."""
        from cuasmrl.deploy.store.change import set_aside
        from cuasmrl.deploy.store.entry import Entry

        data = self.shelf.read(key) if is_key(key) else None
        if data is None:
            return None
        try:
            packed = unpack(data, key)
            check_contract(packed, key)
            return Entry.unpacked(packed)
        except UnusableError:
            raise
        except (CuasmrlError, LookupError, TypeError, ValueError) as error:
            place = set_aside(self.shelf, key, data, str(error))
            raise DamagedError(f"{error}" + (f"; it is now in {place}" if place else "")) from error

    def keys(self) -> list[str]:
        """Of all entries, usable or not."""
        return self.shelf.all_keys()

    def entries(self) -> Iterator[Entry]:
        """All that can be used, in the order of their keys."""
        for key in self.shelf.all_keys():
            entry = self.find(key)
            if entry is not None:
                yield entry

    def resolve(self, start: str) -> str:
        """The only key that begins like this."""
        found = [key for key in self.shelf.all_keys() if key.startswith(start)] if start else []
        if len(found) == 1:
            return found[0]
        if not found:
            raise CuasmrlError(f"the store {self.shelf.root} has no entry {start}; see `cuasmrl store ls`")
        raise CuasmrlError(f"{len(found)} entries of {self.shelf.root} begin with {start}; give more digits")

    def remove(self, key: str) -> bool:
        """Was there such an entry?"""
        from cuasmrl.deploy.store.change import changing

        if not is_key(key) or self.shelf.read(key) is None:
            return False
        with changing(self.shelf) as change:
            return change.remove(key)

    def verify(self, progress: Progress | None = None) -> list[Inspected]:
        """Prove every entry again, set aside what fails, renew certificates of older rules."""
        from cuasmrl.deploy.store.inspection import verify

        return verify(self.shelf, progress)

    def export(self, path: Path | str, keys: Iterable[str] | None = None) -> int:
        """Write entries, by default all, to one file; how many."""
        from cuasmrl.deploy.store.archive import export

        return export(self, path, keys)

    def import_(self, path: Path | str, replace: bool = False, progress: Progress | None = None) -> Imported:
        """Prove the entries of an exported file and keep them; nothing is kept if one fails.

        What they are for waits no longer, if it was recorded.
        """
        from cuasmrl.deploy.store.archive import import_

        found = import_(self.shelf, path, replace, progress)
        for key in found.added + found.replaced + found.kept:
            self.forget_recorded(key)
        return found

    def record(
        self,
        cubin: bytes,
        launches: Iterable[Mapping[str, Any]] = (),
        origin: Mapping[str, Any] | None = None,
    ) -> Recorded:
        """Note down a kernel to be optimised later, with launch files as JSON objects."""
        from cuasmrl.deploy.store.pending import record

        return record(self.root / "pending", cubin, launches, origin or {})

    def recorded(self) -> list[Recorded]:
        """Kernels that wait to be optimised."""
        from cuasmrl.deploy.store.pending import recorded

        return recorded(self.root / "pending")

    def recorded_as(self, key: str) -> Recorded | None:
        """One of them."""
        from cuasmrl.deploy.store.pending import Recorded

        found = Recorded(key, self.root / "pending" / key)
        return found if found.cubin.is_file() else None

    def forget_recorded(self, key: str) -> bool:
        """Was there such a kernel?"""
        from cuasmrl.deploy.store.pending import forget

        return is_key(key) and forget(self.root / "pending", key)


def default_root() -> str:
    """$CUASMRL_STORE, else cuasmrl/store in the user's cache directory."""
    explicit = os.environ.get(LOCATION)
    if explicit:
        return os.path.abspath(explicit)
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(os.path.abspath(cache), "cuasmrl", "store")


_reported: set[str] = set()


def _report(sentence: str) -> None:
    """Once in a process."""
    if sentence not in _reported:
        _reported.add(sentence)
        print(f"cuasmrl: {sentence}", file=sys.stderr)
