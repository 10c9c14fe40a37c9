"""The cubins of a wheel, taken out once: DIRECTORY/cubins/<name>-<version>/sm_80/*.cubin."""

import csv
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from cuasmrl.bench.vendor.wheels import title
from cuasmrl.binary.cubin.images import Image, Skipped, images_below
from cuasmrl.errors import CuasmrlError

CUBINS = "cubins"
SKIPPED = "skipped.csv"
"""Beside the cubins of a chip: what of the wheel could not be read."""


def unpack(wheel: Path, directory: Path, archs: Iterable[int]) -> None:
    """Take out what is not there yet; the folder of a chip is there whole or not at all."""
    home = directory / CUBINS / title(wheel)
    missing = [arch for arch in archs if not folder_of(home, arch).exists()]
    if not missing:
        return
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".", dir=home) as name:
        unzipped = Path(name) / "wheel"
        _unzip(wheel, unzipped)
        for arch in missing:
            scratch = Path(name) / f"sm_{arch}"
            _take_out(unzipped, arch, scratch)
            scratch.replace(folder_of(home, arch))


def folder_of(home: Path, arch: int) -> Path:
    return home / f"sm_{arch}"


def skipped_in(folder: Path) -> int:
    """Cubins and files of the wheel that could not be read."""
    with (folder / SKIPPED).open(encoding="utf-8", newline="") as file:
        return sum(int(row["count"]) for row in csv.DictReader(file))


def _unzip(wheel: Path, target: Path) -> None:
    target.mkdir()
    try:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise CuasmrlError(
            f"{wheel} cannot be unpacked ({error}); delete it and download it again"
        ) from error


def _take_out(unzipped: Path, arch: int, folder: Path) -> None:
    folder.mkdir()
    skipped: list[Skipped] = []
    for image in images_below(unzipped, [arch], skipped.append):
        image.cubin.save(folder / _file_name(unzipped, image))
    _write([entry for entry in skipped if entry.is_fault], unzipped, folder / SKIPPED)


def _file_name(unzipped: Path, image: Image) -> str:
    inside = image.source.relative_to(unzipped).as_posix().replace("/", "-").removesuffix(".cubin")
    number = "" if image.name == image.source.name else f".{image.name}"
    return f"{inside}{number}.cubin"


def _write(skipped: list[Skipped], unzipped: Path, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("file", "reason", "count"))
        for entry in skipped:
            writer.writerow((entry.path.relative_to(unzipped).as_posix(), entry.reason, entry.count))
