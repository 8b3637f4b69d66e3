# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries. CuPy is stood in for by a module of its name and ways, since tests run without a GPU."""
import sys
import types

import numpy as np
import pytest
import scipy.sparse as sp

import krilu
from conftest import poisson, right_side


class FakeArray:
    """On a GPU, as far as anybody can tell: the host sees it through get() only."""

    def __init__(self, values):
        self._values = np.array(values)
        self.dtype, self.shape = self._values.dtype, self._values.shape
        self.device = FakeDevice()

    def get(self):
        return self._values.copy()

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        raise BufferError("this array is on a GPU")

    @property
    def __cuda_array_interface__(self):
        raise AssertionError("nobody should look at device memory here")

    def __array__(self, *_, **__):
        raise TypeError("implicit conversion to a NumPy array is not allowed")


class FakeDevice:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


@pytest.fixture
def cupy(monkeypatch):
    module = types.ModuleType("cupy")
    array = type("ndarray", (FakeArray,), {"__module__": "cupy"})
    module.ndarray, module.asarray = array, array
    module.cuda = types.SimpleNamespace(Device=FakeDevice)
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def test_cupys_vectors_come_and_go_as_such(cupy):
    a = poisson(8)
    b = right_side(64)
    expected, _ = krilu.solve(a, b, device="host")  # also where there is a GPU, which would take CuPy's own in place
    x, report = krilu.solve(a, cupy.asarray(b), cupy.asarray(np.zeros(64)), device="host")
    assert type(x) is cupy.ndarray and np.array_equal(x.get(), expected)
    for name in ("b", "x0"):
        assert any(n.startswith(f"{name} was brought from the GPU") for n in report.notes)
    x, info = krilu.cg(a, cupy.asarray(b))
    assert type(x) is cupy.ndarray and info == 0
    z = krilu.dilu(a)._solver.apply(cupy.asarray(b))
    assert type(z) is cupy.ndarray


def test_cupys_sparse_matrices_are_brought_to_the_host(cupy):
    a = poisson(8)
    matrix = type("csr_matrix", (), {"__module__": "cupyx.scipy.sparse._csr", "get": lambda self: a})()
    b = right_side(64)
    x, report = krilu.solve(matrix, b)
    assert type(x) is np.ndarray and np.array_equal(x, krilu.solve(a, b)[0])
    assert any("the matrix was brought from the GPU" in n for n in report.notes)


def test_complex_vectors_on_a_gpu(cupy):
    with pytest.raises(TypeError, match="complex"):
        krilu.solve(poisson(2), cupy.asarray(np.ones(4) * 1j))


def test_a_gpu_array_without_cupy_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(TypeError, match="CuPy"):
        krilu.solve(poisson(2), FakeArray(np.ones(4)))


def test_dlpack_on_the_host_is_read_in_place():
    class Producer:  # DLPack and nothing else
        def __init__(self, v):
            self.v = v

        def __dlpack__(self, **kwargs):
            return self.v.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.v.__dlpack_device__()

    b = right_side(64)
    x, report = krilu.solve(poisson(8), Producer(b))
    assert np.array_equal(x, krilu.solve(poisson(8), b)[0])
    assert not any(n.startswith("b ") for n in report.notes)


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_other_libraries_arrays_come_and_go_as_such(library):
    numpy_like = pytest.importorskip("jax.numpy" if library == "jax" else "torch", reason=f"{library} is not installed")
    given = numpy_like.asarray(np.arange(64, dtype=np.float32))
    x, report = krilu.solve(poisson(8), given)
    assert type(x) is type(given)
    np.testing.assert_allclose(np.asarray(x), krilu.solve(poisson(8), np.arange(64.0))[0], rtol=1e-6)
    assert any("b was converted from float32" in n for n in report.notes)


def test_the_emulated_device_gives_the_hosts_answer():
    a = sp.csr_array(poisson(10))
    b = right_side(100)
    x, report = krilu.solve(a, b, solver="cg", precond="dic", device="emulated")
    assert report.converged and report.device == "emulated"
    np.testing.assert_allclose(x, krilu.solve(a, b)[0], rtol=1e-6)
