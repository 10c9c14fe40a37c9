"""What `cuobjdump -elf` prints, as data: the second opinion on every record."""

import re
from dataclasses import dataclass

FORMATS = {"EIFMT_NVAL": 1, "EIFMT_BVAL": 2, "EIFMT_HVAL": 3, "EIFMT_SVAL": 4}


@dataclass(frozen=True)
class Printed:
    name: str
    format: int
    text: str

    def numbers(self) -> list[int]:
        return [int(number, 0) for number in re.findall(r"0x[0-9a-f]+|\b\d+\b", self.text)]


def info_sections(listing: str) -> dict[str, list[Printed]]:
    """{section name: its records} of every `.nv.info` section."""
    found = {}
    for part in re.split(r"^(?=\.)", listing, flags=re.MULTILINE):
        title, _, body = part.partition("\n")
        if title.startswith(".nv.info"):
            found[title.strip()] = [
                _record(entry) for entry in re.split(r"^\t<0x?\d+>\n", body, flags=re.MULTILINE)[1:]
            ]
    return found


def _record(entry: str) -> Printed:
    match = re.match(r"\tAttribute:\t(.*)\n\tFormat:\t(\w+)\n(?:\tValue:\t?(.*))?", entry, flags=re.DOTALL)
    assert match is not None, entry
    return Printed(match[1].removeprefix("EIATTR_"), FORMATS[match[2]], (match[3] or "").strip())


def resource_usage(listing: str) -> dict[str, dict[str, int]]:
    """{kernel: {"REG": .., "SHARED": .., "CONSTANT[0]": ..}} of `cuobjdump -res-usage`."""
    found = {}
    for name, text in re.findall(r"Function (\S+):\n(.*)", listing):
        found[name] = {key: int(value) for key, value in re.findall(r"([A-Z]+(?:\[\d+\])?):(\d+)", text)}
    return found
