"""Download the wheels of the campaign: `python -m cuasmrl.bench.vendor.download DIRECTORY`."""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from cuasmrl.bench.vendor.wheels import WHEELS, Wheel, wheels
from cuasmrl.errors import CuasmrlError


def download(
    directory: str | Path,
    wanted: Sequence[Wheel] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """All wheels in `directory`/wheels; those that are there are not downloaded again."""
    chosen = wheels() if wanted is None else wanted
    target = Path(directory) / WHEELS
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CuasmrlError(f"cannot write {target}: {error.strerror}; choose a writable place") from error
    found = []
    for done, wheel in enumerate(chosen, 1):
        found.append(wheel.file_in(target) or _fetch(wheel, target))
        if progress:
            progress(done, len(chosen))
    return found


def _fetch(wheel: Wheel, target: Path) -> Path:
    """Through a folder beside the others, so that no half of a wheel is ever taken for a whole one."""
    with tempfile.TemporaryDirectory(prefix=".", dir=target) as folder:
        command = [
            sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
            "--python-version", wheel.python, "--platform", wheel.platform, "--dest", folder,
            f"{wheel.name}=={wheel.version}",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, check=False)
        path = wheel.file_in(Path(folder))
        if done.returncode or path is None:
            raise CuasmrlError(
                f"pip cannot download {wheel.name} {wheel.version} ({_reason(done)}); "
                f"try again later, or put the wheel into {target}"
            )
        return path.replace(target / path.name)


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    printed = done.stderr.decode(errors="replace").splitlines()
    errors = [line.removeprefix("ERROR: ") for line in printed if line.startswith("ERROR: ")]
    return (errors or printed or [f"exit status {done.returncode}"])[-1].strip().rstrip(".")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m cuasmrl.bench.vendor.download", description=__doc__)
    parser.add_argument("directory", help="The wheels go to DIRECTORY/wheels.")
    directory = parser.parse_args(arguments).directory
    try:
        found = download(directory, progress=lambda done, total: print(f"{done} of {total}", flush=True))
    except CuasmrlError as error:
        print(error, file=sys.stderr)
        return 2
    size = sum(path.stat().st_size for path in found)
    print(f"{len(found)} wheels, {size / 1e6:.0f} MB in {Path(directory) / WHEELS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
