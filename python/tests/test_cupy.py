# SPDX-License-Identifier: Apache-2.0
"""CuPy's arrays on a GPU, and PyTorch's and Numba's where they are installed: taken in place, the bits of the way
through the host, in the order of their library's streams. Needs a GPU, and krilu built for it; test_in_place.py needs
none."""
import pathlib
import re

import numpy as np
import pytest

import krilu
from conftest import convection, poisson, right_side

cp = pytest.importorskip("cupy", reason="CuPy is not installed")
csp = pytest.importorskip("cupyx.scipy.sparse", reason="CuPy is not installed")


def _gpus():
    try:
        count = cp.cuda.runtime.getDeviceCount()
        krilu.Solver(device="cuda")
        return count
    except (cp.cuda.runtime.CUDARuntimeError, krilu.Error):
        return 0


pytestmark = pytest.mark.skipif(_gpus() == 0, reason="no GPU, or krilu was built for none")

NAMED = [("auto", "auto"), ("bicgstab", "dilu"), ("gmres", "ilu0"), ("bicgstab", "jacobi")]


def has(notes, *starts):
    return all(any(n.startswith(start) for n in notes) for start in starts)


def moved(notes):
    """What says that something left its place, but for the pattern."""
    return [n for n in notes if ("brought" in n or "copied" in n or "converted" in n)
            and not n.startswith("the matrix's pattern was brought to host memory, where it is analysed")]


@pytest.mark.parametrize("solver,precond", NAMED)
def test_in_place_gives_the_bits_of_the_host(solver, precond):
    # What auto chooses for a lattice in few colours hangs on no clock.
    a = poisson(60) if solver == "auto" else convection(60)
    b, guess = right_side(3600), right_side(3600, 2)
    for x0 in (None, guess):
        expected, host = krilu.solve(a, b, x0, solver=solver, precond=precond, device="cuda")
        b_there, x0_there = cp.asarray(b), None if x0 is None else cp.asarray(x0)
        x, report = krilu.solve(csp.csr_matrix(a), b_there, x0_there, solver=solver, precond=precond)
        assert report.device.startswith("cuda:0") and report.converged
        assert type(x) is cp.ndarray and x.dtype == np.float64 and x.device.id == 0
        assert np.array_equal(x.get(), expected) and np.array_equal(report.history, host.history)
        assert moved(report.notes) == [] and len(report.notes) == len(host.notes) + 1
        # What was handed over is as it was, and x is new.
        assert np.array_equal(b_there.get(), b) and x.data.ptr != b_there.data.ptr
        if x0 is not None:
            assert np.array_equal(x0_there.get(), x0) and x.data.ptr != x0_there.data.ptr


def test_steps_update_in_place():
    a, b = poisson(50), right_side(2500)
    there, b_there = csp.csr_matrix(a), cp.asarray(b)
    here = krilu.Solver(solver="cg", precond="dic", device="cuda")
    solver = krilu.Solver(solver="cg", precond="dic", device="cuda")
    here.analyse(a)
    solver.analyse(there)
    x = y = None
    for step in range(3):
        there.data *= 1.5
        a = a * 1.5
        here.update(a)
        solver.update(there)
        x, _ = here.solve(b, x)
        y, report = solver.solve(b_there, y)
        assert np.array_equal(y.get(), x)
        assert moved(report.notes) == []
        assert np.array_equal(solver.apply(b_there).get(), here.apply(b))
    assert solver.counts == (1, 3, 3)
    with pytest.raises(krilu.Error, match="another pattern"):
        solver.update(csp.csr_matrix(convection(50)[::-1].tocsr()))


def test_notes_say_what_was_copied():
    a, b = convection(40), right_side(1600)
    x, report = krilu.solve(csp.csc_matrix(a.astype(np.float32).tocsc()), cp.asarray(b)[::-1], rtol=1e-9)
    expected = a.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(expected @ x.get(), b[::-1], atol=1e-7)
    assert has(report.notes, "the matrix was converted to CSR on the GPU: it came as CSC",
               "the matrix's values were converted from float32 to float64 on the GPU",
               "b was copied on the GPU, since there are gaps between entries")
    x, report = krilu.solve(csp.csr_matrix(a), cp.asarray(b.astype(np.float32)), b)
    assert has(report.notes, "b was converted from float32 to float64 on the GPU", "x0 was brought to the GPU")
    x, report = krilu.solve(csp.csr_matrix(a), cp.asarray(b), device="host")
    assert type(x) is cp.ndarray
    assert has(report.notes, "the matrix was brought from the GPU", "b was brought from the GPU")
    x, report = krilu.solve(csp.csr_matrix(a), cp.asarray(b), solver="gmres", precond="ilut:10,0.01")
    assert has(report.notes, "the matrix's values were brought to host memory as well")


def test_unsorted_columns_and_duplicates_are_put_in_order_on_the_gpu():
    a, b = convection(30).tocoo(), right_side(900)
    order = np.lexsort((-a.col, a.row))
    twice = np.repeat(order, 2)
    offsets = np.concatenate([[0], np.cumsum(2 * np.bincount(a.row, minlength=900))]).astype(np.int32)
    there = csp.csr_matrix((cp.asarray(a.data[twice] / 2), cp.asarray(a.col[twice].astype(np.int32)),
                            cp.asarray(offsets)), shape=a.shape)
    x, report = krilu.solve(there, cp.asarray(b), solver="bicgstab", precond="dilu")
    assert np.array_equal(x.get(), krilu.solve(a, b, solver="bicgstab", precond="dilu", device="cuda")[0])
    assert has(report.notes, "the matrix was copied on the GPU to sort its columns within rows; ")
    assert there.nnz == 2 * a.nnz


def test_bad_numbers_are_refused_in_the_hosts_words():
    a, b = poisson(20), right_side(400)
    for bad in (np.nan, np.inf):
        v = b.copy()
        v[77] = bad
        with pytest.raises(krilu.Error) as here:
            krilu.solve(a, v)
        with pytest.raises(krilu.Error) as there:
            krilu.solve(csp.csr_matrix(a), cp.asarray(v))
        assert str(there.value) == str(here.value)
    with pytest.raises(TypeError, match="complex"):
        krilu.solve(csp.csr_matrix(a), cp.asarray(b * 1j))


LATE = r"""
extern "C" __global__ void late(double* v, double value, long long n, long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
  for (long long i = threadIdx.x; i < n; i += blockDim.x) v[i] = value;
}
"""


@pytest.mark.parametrize("stream", ["own", "null", "per thread"])
def test_the_producers_stream_is_waited_for(stream):
    a, n = poisson(30), 900
    expected, _ = krilu.solve(a, np.ones(n), solver="cg", precond="dic", device="cuda")
    solver = krilu.Solver(solver="cg", precond="dic", device="cuda")
    solver.setup(csp.csr_matrix(a))
    late = cp.RawKernel(LATE, "late")
    b = cp.full(n, 7.0)
    cp.cuda.Device().synchronize()
    streams = {"own": cp.cuda.Stream(non_blocking=True), "null": cp.cuda.Stream.null, "per thread": cp.cuda.Stream.ptds}
    with streams[stream]:
        late((1,), (256,), (b, 1.0, np.int64(n), np.int64(200_000_000)))
        x, _ = solver.solve(b)
        twice = x + x
    assert np.array_equal(x.get(), expected)
    assert np.array_equal(twice.get(), 2 * expected)


def test_torchs_vectors_are_taken_in_place():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    a, b = poisson(30), right_side(900)
    given = torch.from_numpy(b).cuda()
    x, report = krilu.solve(a, given, given, device="cuda")
    assert x.is_cuda and x.dtype == torch.float64 and torch.equal(given.cpu(), torch.from_numpy(b))
    assert np.array_equal(x.cpu().numpy(), krilu.solve(a, b, b, device="cuda")[0])
    assert moved(report.notes) == []


class ByDlpack:
    """DLPack and nothing else."""

    def __init__(self, v):
        self._v = v

    def __dlpack__(self, **kwargs):
        return self._v.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self._v.__dlpack_device__()


class ByInterface:
    """__cuda_array_interface__ and nothing else, as Numba's arrays have it."""

    def __init__(self, v):
        self._v = v

    @property
    def __cuda_array_interface__(self):
        return self._v.__cuda_array_interface__


@pytest.mark.parametrize("kind", [ByDlpack, ByInterface])
def test_protocols_are_read_in_place(kind):
    a, b = poisson(30), right_side(900)
    x, report = krilu.solve(a, kind(cp.asarray(b)), device="cuda")
    assert type(x) is cp.ndarray and np.array_equal(x.get(), krilu.solve(a, b, device="cuda")[0])
    assert moved(report.notes) == []


@pytest.mark.skipif(_gpus() < 2, reason="one GPU alone")
def test_the_arrays_choose_the_gpu():
    a, b = poisson(30), right_side(900)
    expected = krilu.solve(a, b, device="cuda")[0]
    with cp.cuda.Device(1):
        there, right = csp.csr_matrix(a), cp.asarray(b)
    x, report = krilu.solve(there, right)
    assert report.device.startswith("cuda:1") and x.device.id == 1 and moved(report.notes) == []
    assert np.array_equal(x.get(), expected)
    x, report = krilu.solve(a, right, device="cuda:0")
    assert x.device.id == 0 and has(report.notes, "b was copied from GPU 1 to GPU 0")
    assert np.array_equal(x.get(), expected)


def test_the_manuals_example_runs():
    manual = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
    if not manual.exists():
        pytest.skip(f"{manual} is not there")
    (example,) = re.findall(r"```py\n(.*?)```", manual.read_text(), re.S)
    names = {"krilu": krilu, "A": poisson(50), "b": np.ones(2500)}
    exec(compile(example, str(manual), "exec"), names)
    assert names["report"].converged and type(names["x"]) is cp.ndarray
    assert names["solver"].counts == (1, 3, 3)
