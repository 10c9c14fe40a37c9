"""Each reference against a second formulation that shares nothing with it."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest

from cuasmrl.workloads import get

Real = npt.NDArray[np.float64]


def case(name: str, shape: int = 1) -> tuple[dict[str, Real], dict[str, Real], Mapping[str, int]]:
    """Inputs and expected outputs of a small problem, in doubles."""
    workload = get(name)
    sizes = workload.shapes[shape]
    inputs = workload.inputs(sizes, seed=7)
    outputs = workload.reference(inputs, sizes)
    as_real = {key: np.asarray(value).astype(np.float64) for key, value in inputs.items()}
    return as_real, {key: expected.value.astype(np.float64) for key, expected in outputs.items()}, sizes


def naive_attention(q: Real, k: Real, v: Real, *, causal: bool) -> Real:
    out = np.zeros(q.shape)
    for i, query in enumerate(q):
        last = i + 1 if causal else len(k)
        powers = [np.exp(float(query @ key) / np.sqrt(q.shape[1])) for key in k[:last]]
        out[i] = sum(p * row for p, row in zip(powers, v[:last], strict=True)) / sum(powers)
    return out


def test_gemm_leaky_relu() -> None:
    given, out, _ = case("gemm_leaky_relu", 3)
    total = np.einsum("mk,kn->mn", given["a_ptr"], given["b_ptr"])
    np.testing.assert_allclose(out["c_ptr"], np.maximum(total, 0.01 * total), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["gemm_persistent", "gemm_splitk"])
def test_plain_products(name: str) -> None:
    given, out, _ = case(name)
    np.testing.assert_allclose(
        out["c_ptr"], np.einsum("mk,kn->mn", given["a_ptr"], given["b_ptr"]), atol=1e-12
    )


def test_bmm() -> None:
    given, out, _ = case("bmm")
    np.testing.assert_allclose(
        out["c_ptr"], np.einsum("bmk,bkn->bmn", given["a_ptr"], given["b_ptr"]), atol=1e-12
    )


def test_fused_ff() -> None:
    given, out, _ = case("fused_ff")
    gate, up = given["x_ptr"] @ given["w1_ptr"], given["x_ptr"] @ given["w3_ptr"]
    # sigmoid(g) = (1 + tanh(g / 2)) / 2
    np.testing.assert_allclose(out["out_ptr"], gate * (1 + np.tanh(gate / 2)) / 2 * up, atol=1e-12)


def test_gemm_int8_is_exact() -> None:
    given, out, _ = case("gemm_int8")
    whole = given["a_ptr"].astype(np.int64) @ given["b_ptr"].astype(np.int64).T
    assert np.array_equal(out["c_ptr"], whole)


def test_gemm_fp8() -> None:
    given, out, _ = case("gemm_fp8")
    a, b = given["a_ptr"] * given["scale_a"], given["b_ptr"] * given["scale_b"]
    np.testing.assert_allclose(out["c_ptr"], np.einsum("mk,nk->mn", a, b), atol=1e-12)


def test_moe_gemm_row_by_row() -> None:
    given, out, sizes = case("moe_gemm")
    seen = 0
    for place in range(int(given["used_ptr"][0])):
        slot = int(given["slot_ptr"][place])
        if slot == sizes["T"] * sizes["TOP"]:
            continue
        expert = int(given["expert_ptr"][place // 64])
        row = given["w_ptr"][expert] @ given["x_ptr"][slot // sizes["TOP"]] * given["gate_ptr"][slot]
        np.testing.assert_allclose(out["out_ptr"][slot], row, atol=1e-12)
        seen += 1
    assert seen == sizes["T"] * sizes["TOP"]


@pytest.mark.parametrize(("name", "causal"), [("flash_attention", False), ("flash_attention_causal", True)])
def test_flash_attention(name: str, causal: bool) -> None:
    given, out, _ = case(name)
    for head in np.ndindex(2, 3):
        want = naive_attention(*(given[p][head] for p in ("q_ptr", "k_ptr", "v_ptr")), causal=causal)
        np.testing.assert_allclose(out["out_ptr"][head], want, rtol=1e-6, atol=1e-6)


def test_paged_attention() -> None:
    given, out, sizes = case("paged_attention", 0)
    for sequence in range(sizes["B"]):
        where = [
            (int(given["table_ptr"][sequence][t // 16]), t % 16)
            for t in range(int(given["length_ptr"][sequence]))
        ]
        k, v = (np.array([given[name][page, slot, 0] for page, slot in where]) for name in ("k_ptr", "v_ptr"))
        want = naive_attention(given["q_ptr"][sequence], k, v, causal=False)
        np.testing.assert_allclose(out["out_ptr"][sequence], want, rtol=1e-6, atol=1e-6)


def test_softmax_sums_to_one_and_keeps_ratios() -> None:
    given, out, _ = case("softmax")
    np.testing.assert_allclose(out["out_ptr"].sum(axis=1), 1.0)
    steps = np.diff(given["x_ptr"], axis=1)
    np.testing.assert_allclose(np.diff(np.log(out["out_ptr"]), axis=1), steps, atol=1e-9)


def test_rmsnorm_has_unit_root_mean_square() -> None:
    given, out, _ = case("rmsnorm")
    plain = out["out_ptr"] / given["weight_ptr"]
    np.testing.assert_allclose(np.sqrt(np.mean(plain**2, axis=-1)), 1.0, rtol=1e-5)
    np.testing.assert_allclose(np.sign(plain), np.sign(given["x_ptr"]))


def test_layernorm_has_zero_mean_and_unit_variance() -> None:
    given, out, _ = case("layernorm")
    plain = (out["out_ptr"] - given["bias_ptr"]) / given["weight_ptr"]
    np.testing.assert_allclose(plain.mean(axis=1), 0.0, atol=1e-9)
    np.testing.assert_allclose(plain.var(axis=1), 1.0, rtol=1e-4)
    np.testing.assert_allclose(out["mean_ptr"], given["x_ptr"].sum(axis=1) / given["x_ptr"].shape[1])
    np.testing.assert_allclose(out["rstd_ptr"] * given["x_ptr"].std(axis=1), 1.0, rtol=1e-4)


def test_cross_entropy_is_minus_the_log_of_the_labels_share() -> None:
    given, out, _ = case("cross_entropy")
    for row, label, loss in zip(given["logits_ptr"], given["label_ptr"], out["loss_ptr"], strict=True):
        want = 0.0 if label == -100 else -np.log(np.exp(row)[int(label)] / np.exp(row).sum())
        assert loss == pytest.approx(want, rel=1e-9)


def test_rope_rotates_each_pair() -> None:
    given, out, sizes = case("rope")
    half = sizes["D"] // 2
    q, turned = (x[..., :half] + 1j * x[..., half:] for x in (given["q_ptr"], out["out_ptr"]))
    rotation = given["cos_ptr"] + 1j * given["sin_ptr"]
    np.testing.assert_allclose(turned, q * rotation[:, None, :], atol=1e-12)
    np.testing.assert_allclose(np.abs(turned), np.abs(q), rtol=1e-6)


def test_vector_add() -> None:
    given, out, _ = case("vector_add")
    assert np.array_equal(out["out_ptr"] - given["x_ptr"], given["y_ptr"])


def test_sgemm() -> None:
    given, out, _ = case("sgemm")
    np.testing.assert_allclose(out["c"], np.einsum("mk,kn->mn", given["a"], given["b"]), atol=1e-12)


def test_transpose_twice_is_the_identity() -> None:
    given, out, _ = case("transpose")
    assert np.array_equal(out["out"].T, given["x"])


def test_reduction() -> None:
    given, out, _ = case("reduction")
    assert out["out"][0] == sum(given["x"].tolist())


def test_stencil_point_by_point() -> None:
    given, out, sizes = case("stencil")
    x, alpha = given["x"], float(given["alpha"])
    for r, c in np.ndindex(x.shape):
        want = x[r, c]
        if 0 < r < sizes["rows"] - 1 and 0 < c < sizes["columns"] - 1:
            want += alpha * (x[r - 1, c] + x[r + 1, c] + x[r, c - 1] + x[r, c + 1] - 4 * x[r, c])
        assert out["out"][r, c] == pytest.approx(want, abs=1e-12)


def test_warp_scan_element_by_element() -> None:
    given, out, _ = case("warp_scan")
    running = 0.0
    for i, value in enumerate(given["x"]):
        running = value if i % 256 == 0 else running + value
        assert out["sums"][i] == running
    for warp, (count, largest) in enumerate(out["counts"]):
        segment = [value for value in given["x"][32 * warp : 32 * warp + 32] if value > 0]
        assert (count, largest) == (len(segment), max(segment, default=0))
        assert list(out["packed"][32 * warp : 32 * warp + len(segment)]) == segment


def test_histogram_counts_everything() -> None:
    given, out, _ = case("histogram")
    assert out["counts"].sum() == len(given["x"])
    assert [int(count) for count in out["counts"]] == [int(np.sum(given["x"] == bin_)) for bin_ in range(256)]


def test_fp64_poly_by_powers() -> None:
    given, out, _ = case("fp64_poly")
    powers = sum(c * given["x"] ** d for d, c in enumerate(given["coefficients"]))
    np.testing.assert_allclose(out["poly"], powers, atol=1e-12)


def test_half2_axpy() -> None:
    given, out, _ = case("half2_axpy")
    np.testing.assert_allclose((out["y"] - given["y"]), float(np.float16(1.7)) * given["x"], atol=1e-12)


def test_int64_mix_with_numpy_words() -> None:
    workload = get("int64_mix")
    inputs = workload.inputs(workload.shapes[0], seed=7)
    out = workload.reference(inputs, workload.shapes[0])
    a, b = np.asarray(inputs["x"]), np.asarray(inputs["y"])
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> shift, b & low, b >> shift
    middle = a1 * b0 + (a0 * b0 >> shift)
    high = a1 * b1 + (middle >> shift) + ((a0 * b1 + (middle & low)) >> shift)
    h = a * np.uint64(0x9E3779B97F4A7C15) + b
    h ^= h >> np.uint64(29)
    turn = b & np.uint64(63)
    h = h << turn | h >> ((np.uint64(64) - turn) & np.uint64(63))
    assert np.array_equal(out["hash"].value, h + high)
    denominator = (b >> np.uint64(33)).astype(np.int64) + 1
    numerator = a.astype(np.int64)
    remainder = np.fmod(numerator, denominator)
    quotient = (numerator - remainder) // denominator
    assert np.array_equal(out["ratio"].value, quotient + remainder)


@pytest.mark.parametrize("name", ["gemm_tma", "gemm_specialised"])
def test_products_with_b_by_columns(name: str) -> None:
    given, out, _ = case(name)
    np.testing.assert_allclose(
        out["c_ptr"], np.einsum("mk,nk->mn", given["a_ptr"], given["b_ptr"]), atol=1e-12
    )


def test_gemm_fp8_blocks() -> None:
    """Scale the operands first, then multiply."""
    given, out, sizes = case("gemm_fp8_blocks")
    k, n = np.arange(sizes["K"]) // 128, np.arange(sizes["N"]) // 128
    a, b = given["a_ptr"] * given["a_scale_ptr"][:, k], given["b_ptr"] * given["b_scale_ptr"][n][:, k]
    np.testing.assert_allclose(out["c_ptr"], a @ b.T, atol=1e-12)


def test_gemm_grouped() -> None:
    given, out, _ = case("gemm_grouped")
    experts = np.repeat(given["expert_ptr"].astype(int), 128)
    rows = [weights @ row for row, weights in zip(given["x_ptr"], given["w_ptr"][experts], strict=True)]
    np.testing.assert_allclose(out["out_ptr"], rows, atol=1e-12)


def test_attention_tma() -> None:
    given, out, sizes = case("attention_tma")
    for head in np.ndindex(sizes["B"], sizes["H"]):
        q, k, v = (given[name][head] for name in ("q_ptr", "k_ptr", "v_ptr"))
        np.testing.assert_allclose(out["out_ptr"][head], naive_attention(q, k, v, causal=False), atol=1e-6)
