from pathlib import Path

import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.files import write_text


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "one")
    write_text(path, "zwölf")
    assert path.read_text(encoding="utf-8") == "zwölf"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(CuasmrlError, match="cannot write .*choose a writable place"):
        write_text(tmp_path / "none" / "a.txt", "text")
