from pathlib import Path

import pytest

from cuasmrl.errors import CuasmrlError
from cuasmrl.workloads import CorpusEntry, build_corpus


def test_corpus_holds_what_builds_and_says_what_does_not(tmp_path: Path) -> None:
    seen: list[tuple[CorpusEntry, int, int]] = []
    corpus = build_corpus(
        tmp_path, [75, 80], ["vector_add", "gemm_int8", "transpose"], progress=lambda *call: seen.append(call)
    )
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.cubin")) == [
        f"sm_{entry.arch}/{entry.workload}-{entry.config}.cubin" for entry in corpus.built
    ]
    assert {(entry.workload, entry.arch) for entry in corpus.missing} == {("gemm_int8", 75)}
    assert all(entry.reason and entry.path is None for entry in corpus.missing)
    assert [done for _, done, _ in seen] == list(range(1, len(seen) + 1))
    assert {total for *_, total in seen} == {len(seen)}
    assert not list(tmp_path.rglob("*.tmp"))


def test_configs_choose(tmp_path: Path) -> None:
    corpus = build_corpus(tmp_path, [80], ["vector_add"], ["b256_w2"], jobs=1)
    assert [entry.config for entry in corpus.built] == ["b256_w2"]


def test_unknown_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CuasmrlError, match="has a config named b257_w2"):
        build_corpus(tmp_path, [80], ["vector_add"], ["b257_w2"])


def test_unknown_name_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(CuasmrlError, match="no workload"):
        build_corpus(tmp_path, [80], ["vector_ad"])
    assert list(tmp_path.iterdir()) == []
