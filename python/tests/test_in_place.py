# SPDX-License-Identifier: Apache-2.0
"""Arrays on the solver's GPU are taken in place. A machine without one stands in for it: the emulated device says that
it is GPU 0, and CuPy is a module of its name whose arrays are NumPy's behind the same attributes. test_cupy.py has the
same of CuPy itself."""
import sys
import types

import numpy as np
import pytest
import scipy.sparse as sp

import krilu
from conftest import convection, poisson, right_side
from krilu import _krilu


class GpuZero:
    """krilu's own solver on the emulated device, under the number 0."""

    def __init__(self, **options):
        self.device = options["device"]
        self._solver = _krilu_solver(**{**options, "device": "emulated"})
        self.calls = []

    def gpu(self):
        return int(self.device.partition(":")[2] or 0)

    def __getattr__(self, name):
        def call(*args):
            self.calls.append(name)
            return getattr(self._solver, name)(*args)

        return call


_krilu_solver = _krilu.Solver


class Array:
    """As much of cupy.ndarray as krilu asks for; what would bring it to the host says so."""

    brought = []

    def __init__(self, values, gpu=0):
        self.values = values
        self.device = Device(gpu)
        self.dtype, self.shape, self.size, self.nbytes = values.dtype, values.shape, values.size, values.nbytes
        self.flags = types.SimpleNamespace(c_contiguous=values.flags.c_contiguous)
        self.data = types.SimpleNamespace(ptr=values.ctypes.data)

    def __dlpack_device__(self):
        return (2, self.device.id)

    def reshape(self, shape):
        view = self.values.reshape(shape)
        assert np.may_share_memory(view, self.values)
        return cupy_array(view, self.device.id)

    def copy(self):
        return cupy_array(self.values.copy(), Device.current)

    def __getitem__(self, key):
        return cupy_array(self.values[key], self.device.id)

    def get(self):
        Array.brought.append(self)
        return self.values.copy()

    def __array__(self, *_, **__):
        raise TypeError("implicit conversion to a NumPy array is not allowed")


class Device:
    current = 0

    def __init__(self, id=0):
        self.id = id

    def __enter__(self):
        self.before, Device.current = Device.current, self.id

    def __exit__(self, *_):
        Device.current = self.before


cupy_array = None


@pytest.fixture
def cupy(monkeypatch):
    global cupy_array
    module = types.ModuleType("cupy")
    module.ndarray = type("ndarray", (Array,), {"__module__": "cupy"})
    cupy_array = module.ndarray
    stream = types.SimpleNamespace(ptr=0, synchronize=lambda: None)

    def array(v, dtype=None, order=None):
        return module.ndarray(np.array(getattr(v, "values", v), dtype=dtype, order="C"), Device.current)

    module.array = module.asarray = array
    module.zeros = lambda n, dtype: module.ndarray(np.zeros(n, dtype), Device.current)
    module.cuda = types.SimpleNamespace(Device=Device, get_current_stream=lambda: stream)
    monkeypatch.setitem(sys.modules, "cupy", module)
    cupyx = types.ModuleType("cupyx.scipy.sparse")
    cupyx.csr_matrix = csr_matrix
    for name in ("cupyx", "cupyx.scipy"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "cupyx.scipy.sparse", cupyx)
    monkeypatch.setattr(_krilu, "Solver", GpuZero)
    Array.brought = []
    Device.current = 0
    return module


class _Sparse:
    """cupyx.scipy.sparse.csr_matrix, or of another format."""

    def __init__(self, parts, shape, copy=False, format="csr"):
        self.data, self.indices, self.indptr = (cupy_array(p.values.copy(), p.device.id) if copy else p for p in parts)
        self.shape, self.format, self.dtype = shape, format, self.data.dtype

    def _host(self):
        if self.format == "coo":
            return sp.coo_array((self.data.values, (self.indices.values, self.indptr.values)), shape=self.shape)
        kind = {"csr": sp.csr_array, "csc": sp.csc_array}[self.format]
        return kind((self.data.values, self.indices.values, self.indptr.values), shape=self.shape)

    def tocsr(self):
        return on_gpu(self._host().tocsr())

    def astype(self, dtype):
        values = cupy_array(self.data.values.astype(dtype), self.data.device.id)
        return csr_matrix([values, self.indices, self.indptr], self.shape, format=self.format)

    def sum_duplicates(self):
        a = self._host()
        a.sum_duplicates()
        self.data, self.indices, self.indptr = (cupy_array(v) for v in (a.data, a.indices, a.indptr))

    def get(self):
        Array.brought.append(self)
        return self._host()


csr_matrix = type("csr_matrix", (_Sparse,), {"__module__": "cupyx.scipy.sparse._csr"})


def on_gpu(a, gpu=0):
    arrays = (a.data, *a.coords) if a.format == "coo" else (a.data, a.indices, a.indptr)
    return csr_matrix([cupy_array(v, gpu) for v in arrays], a.shape, format=a.format)


def plain(a, b, x0=None, **options):
    """What arrays in host memory give on the emulated device."""
    solver = _krilu_solver
    _krilu.Solver, fake = solver, _krilu.Solver
    try:
        return krilu.solve(a, b, x0, device="emulated", **options)
    finally:
        _krilu.Solver = fake


def has(notes, *starts):
    return all(any(n.startswith(start) for n in notes) for start in starts)


def test_nothing_goes_through_the_host(cupy):
    a, b = convection(9), right_side(81)
    there = cupy.asarray(b)
    x, report = krilu.solve(on_gpu(a), there, solver="bicgstab", precond="dilu")
    expected, host = plain(a, b, solver="bicgstab", precond="dilu")
    assert type(x) is cupy.ndarray and x.dtype == np.float64 and x.shape == (81,) and x.data.ptr != there.data.ptr
    assert np.array_equal(x.values, expected) and np.array_equal(report.history, host.history)
    assert np.array_equal(there.values, b)
    assert [v.dtype for v in Array.brought] == [np.int32, np.int32]  # the pattern, once
    assert has(report.notes, "the matrix's pattern was brought to host memory, where it is analysed")
    assert not any(n.startswith(("b ", "x0 ", "the matrix was", "the matrix's columns", "the matrix's offsets"))
                   for n in report.notes)
    assert (report.rows, report.nnz, report.matrix) == (81, a.nnz, "csr_matrix")
    assert report.matrix_bytes == 4 * 82 + 12 * a.nnz


def test_the_guess_is_copied_and_not_changed(cupy):
    a, b = poisson(9), right_side(81)
    guess = right_side(81, 2)
    for x0 in (cupy.asarray(guess), guess):
        x, report = krilu.solve(on_gpu(a), cupy.asarray(b).reshape((81, 1)), x0, solver="cg", precond="dic")
        expected, host = plain(a, b, guess, solver="cg", precond="dic")
        assert x.shape == (81, 1) and np.array_equal(x.values.ravel(), expected)
        assert report.initial_residual == host.initial_residual != 1
        assert np.array_equal(getattr(x0, "values", x0), guess)
        assert has(report.notes, "x0 was brought to the GPU") == (x0 is guess)


def test_steps_update_values_where_they_are(cupy):
    a, b = convection(9), right_side(81)
    solver = krilu.Solver(solver="bicgstab", precond="dilu")
    there = on_gpu(a)
    solver.analyse(there)
    Array.brought.clear()
    for scale in (1.0, 2.0):
        there.data = cupy.asarray(scale * a.data)
        solver.update(there)
        x, report = solver.solve(cupy.asarray(b))
        assert np.array_equal(x.values, plain(scale * a, b, solver="bicgstab", precond="dilu")[0])
        z = solver.apply(cupy.asarray(b))
        assert type(z) is cupy.ndarray and np.isfinite(z.values).all()
    assert Array.brought == [] and solver.counts == (1, 2, 2)
    with pytest.raises(krilu.Error, match="another pattern"):
        solver.update(on_gpu(poisson(9)))
    # Values from the host go to the same analysis, and after an analysis from the host those of a GPU go through it.
    solver.update(3 * a)
    assert solver.solve(b)[1].converged
    solver.setup(a)
    solver.update(there)
    x, report = solver.solve(b)
    assert type(x) is np.ndarray and has(report.notes, "the matrix was brought from the GPU to host memory")


def test_what_does_not_fit_is_said(cupy):
    a, b = convection(9), right_side(81)
    single = a.astype(np.float32)
    gaps = cupy_array(np.repeat(b, 2)[::2])
    x, report = krilu.solve(on_gpu(single.tocsc()), gaps, cupy.asarray(b.astype(np.float32)), rtol=1e-10)
    np.testing.assert_allclose(single.astype(np.float64) @ x.values, b, atol=1e-8)
    assert has(report.notes, "the matrix was converted to CSR on the GPU: it came as CSC",
               "the matrix's values were converted from float32 to float64 on the GPU",
               "b was copied on the GPU, since there are gaps between entries",
               "x0 was converted from float32 to float64 on the GPU")
    wide = on_gpu(a)
    wide.indices, wide.indptr = (cupy_array(v.astype(np.int64)) for v in (a.indices, a.indptr))
    x, report = krilu.solve(wide, b)
    assert type(x) is np.ndarray
    assert has(report.notes, "the matrix's offsets were converted from int64 to int32 on the GPU",
               "the matrix's columns were converted from int64 to int32 on the GPU")
    backwards = sp.csr_array((a.data.copy(), a.indices.copy(), a.indptr.copy()), shape=a.shape)
    for i in range(81):
        row = slice(a.indptr[i], a.indptr[i + 1])
        backwards.data[row], backwards.indices[row] = a.data[row][::-1], a.indices[row][::-1]
    solver = krilu.Solver()
    for step in (solver.setup, solver.update):
        step(on_gpu(backwards))
        x, report = solver.solve(cupy.asarray(b))
        assert has(report.notes, "the matrix was copied on the GPU to sort its columns within rows")
        assert np.array_equal(x.values, plain(a, b)[0])


def test_duplicates_are_added_in_doubles(cupy):
    a = sp.coo_array((np.array([2**24, 1, 1, 1], np.float32), ([0, 0, 0, 1], [0, 0, 0, 1])), shape=(2, 2))
    x, report = krilu.solve(on_gpu(a), cupy.asarray(np.array([2**24 + 2.0, 1.0])), rtol=1e-12)
    np.testing.assert_allclose(x.values, 1, rtol=1e-10)
    assert has(report.notes, "the matrix was converted to CSR on the GPU: it came as COO",
               "the matrix's values were converted from float32 to float64 on the GPU")


def test_bad_input_is_refused_as_from_the_host(cupy):
    a, b = poisson(9), right_side(81)
    with pytest.raises(TypeError, match="complex"):
        krilu.solve(on_gpu(a), cupy.asarray(b * 1j))
    with pytest.raises(krilu.Error, match="shape"):
        krilu.solve(on_gpu(a), cupy.asarray(b[:80]))
    with pytest.raises(krilu.Error, match="right-hand side holds NaN in row 8"):
        krilu.solve(on_gpu(a), cupy.asarray(np.where(np.arange(81) == 7, np.nan, b)))
    for row, offset in ((0, 1), (5, 200), (81, 1 << 30)):
        broken = on_gpu(a)
        broken.indptr = cupy_array(a.indptr.copy())
        broken.indptr.values[row] = offset
        with pytest.raises(krilu.Error, match="offset"):
            krilu.solve(broken, b)


def test_the_arrays_choose_the_gpu(cupy):
    a, b = poisson(9), right_side(81)
    expected = plain(a, b)[0]
    for matrix, right in ((on_gpu(a, 1), cupy_array(b, 1)), (a, cupy_array(b, 1)), (on_gpu(a, 1), cupy_array(b, 0))):
        x, report = krilu.solve(matrix, right)
        assert x.device.id == 1 and np.array_equal(x.values, expected)
        assert has(report.notes, "b was copied from GPU 0 to GPU 1") == (right.device.id == 0)
    x, report = krilu.solve(on_gpu(a, 1), b, device="cuda:0")
    assert has(report.notes, "the matrix's values were copied from GPU 1 to GPU 0")
    solver = krilu.Solver(device="cuda")
    solver.setup(on_gpu(a, 1))
    assert solver._solver.gpu() == 1 and solver.counts == (1, 1, 0)


def test_scipys_signatures_go_through_the_host(cupy):
    a, b = poisson(9), right_side(81)
    x, info = krilu.cg(on_gpu(a), cupy.asarray(b))
    assert info == 0 and type(x) is cupy.ndarray
    M = krilu.dic(on_gpu(a), device="cuda")
    M.update(on_gpu(2 * a))
    assert np.isfinite(M @ b).all()
