# SPDX-License-Identifier: Apache-2.0
"""Arrays on the GPU that a solver works on, taken where they are: no copy through the host.

CuPy's and PyTorch's are known; any other that says by DLPack or ``__cuda_array_interface__`` where it stands is seen as
CuPy's view of it. What does not fit (another type, gaps between entries, another GPU) is copied on the GPU, and `notes`
say so. Work that the array's library has in its current stream is waited for.
"""
from __future__ import annotations

from typing import Any, Optional

import numpy as np
import scipy.sparse as sparse

from . import _krilu
from ._arrays import _library_of, _on_device, _require_real, _require_shape, _require_square
from ._arrays import vector as _host_vector
from ._krilu import Error

_PER_THREAD = 2  # CUDA's default stream of each thread


class _CuPy:
    """What is done with arrays of a GPU, by CuPy."""

    def __init__(self, gpu: int):
        import cupy

        self.gpu, self.cupy = gpu, cupy

    def here(self) -> Any:
        return self.cupy.cuda.Device(self.gpu)

    def view(self, v: Any) -> Any:
        if isinstance(v, self.cupy.ndarray):
            return v
        with self.here():
            return self.cupy.from_dlpack(v) if hasattr(v, "__dlpack__") else self.cupy.asarray(v)

    def dtype(self, v: Any) -> np.dtype:
        return np.dtype(v.dtype)

    def gpu_of(self, v: Any) -> int:
        return int(v.device.id)

    def contiguous(self, v: Any) -> bool:
        return bool(v.flags.c_contiguous)

    def copy(self, v: Any, dtype: type) -> Any:
        if isinstance(v, self.cupy.ndarray) and self.gpu_of(v) != self.gpu:
            with v.device:  # what writes v, there
                self.cupy.cuda.get_current_stream().synchronize()
            with self.here():
                v = v.copy()  # conversions work on one GPU
        with self.here():
            return self.cupy.array(v, dtype=dtype, order="C")

    def zeros(self, n: int) -> Any:
        with self.here():
            return self.cupy.zeros(n, dtype=np.float64)

    def place(self, v: Any) -> tuple[int, int, int]:
        """Address, entries and stream, for one call."""
        with self.here():
            stream = int(self.cupy.cuda.get_current_stream().ptr)
            if stream == _PER_THREAD:  # the call may come from another thread
                self.cupy.cuda.get_current_stream().synchronize()
                stream = 0
        return int(v.data.ptr), int(v.size), stream


class _Torch:
    """The same by PyTorch."""

    def __init__(self, gpu: int):
        import torch

        self.gpu, self.torch = gpu, torch

    def view(self, v: Any) -> Any:
        return (v if isinstance(v, self.torch.Tensor) else self.torch.from_dlpack(v)).detach().resolve_neg()

    def dtype(self, v: Any) -> np.dtype:
        name = str(v.dtype).rpartition(".")[2]
        return np.dtype("float32" if name == "bfloat16" else name)  # NumPy has none: the values are those of a float32

    def gpu_of(self, v: Any) -> int:
        return int(v.device.index)

    def contiguous(self, v: Any) -> bool:
        return bool(v.is_contiguous())

    def copy(self, v: Any, dtype: type) -> Any:
        v = self.torch.as_tensor(v)
        return v.to(device=f"cuda:{self.gpu}", dtype=self.torch.float64, copy=True).contiguous()

    def zeros(self, n: int) -> Any:
        return self.torch.zeros(n, dtype=self.torch.float64, device=f"cuda:{self.gpu}")

    def place(self, v: Any) -> tuple[int, int, int]:
        return int(v.data_ptr()), int(v.numel()), int(self.torch.cuda.current_stream(self.gpu).cuda_stream)


def _library_for(v: Any, gpu: int) -> Any:
    """None where nothing here can work with v: JAX's arrays are not written, and others need CuPy."""
    name = _library_of(v)
    if name == "torch":
        return _Torch(gpu)
    if name in ("jax", "jaxlib"):
        return None
    try:
        return _CuPy(gpu)
    except ImportError:
        return None


def _is_sparse(a: Any) -> bool:
    return _library_of(a) == "cupyx" and hasattr(a, "tocsr")


def gpu_of(*arrays: Any) -> Optional[int]:
    """The GPU of the first array, or CuPy sparse matrix, that is on one."""
    for a in arrays:
        if _is_sparse(a):
            return int(a.data.device.id)
        if not isinstance(a, np.ndarray) and not sparse.issparse(a) and _on_device(a):
            if hasattr(a, "__dlpack_device__"):
                return int(a.__dlpack_device__()[1])
            number = _krilu.gpu_of(int(a.__cuda_array_interface__["data"][0]))
            return number if number >= 0 else None
    return None


class DeviceVector:
    """A vector on the solver's GPU: `array` is the caller's own wherever that will do."""

    def __init__(self, library: Any, array: Any, shape: tuple[int, ...], given: Any):
        self.library, self.array, self._shape, self._given = library, array, shape, given

    @property
    def place(self) -> tuple[int, int, int]:
        return self.library.place(self.array)

    def another(self, array: Any) -> DeviceVector:
        """Of the same kind."""
        return DeviceVector(self.library, array, self._shape, self._given)

    def zeros(self) -> DeviceVector:
        return self.another(self.library.zeros(self._shape[0]))

    def handed_over(self) -> Any:
        """As an array of the caller's library, in the caller's shape."""
        x = self.array.reshape(self._shape)
        if _library_of(self._given) == "numba":
            from numba import cuda

            return cuda.as_cuda_array(x)
        return x


def vector(v: Any, rows: int, what: str, notes: list[str], gpu: int) -> Optional[DeviceVector]:
    """A vector of `rows` entries that stands on a GPU, for a solver that works on GPU number `gpu`. None where it has
    to go through the host. Raises what `_arrays.vector` raises."""
    if gpu < 0 or isinstance(v, np.ndarray) or sparse.issparse(v) or not _on_device(v):
        return None
    library = _library_for(v, gpu)
    if library is None:
        return None
    given = library.view(v)
    dtype = library.dtype(given)
    shape = tuple(given.shape)
    _require_real(dtype, what)
    _require_shape(shape, rows, what)
    flat = given.reshape(rows) if library.contiguous(given) or len(shape) == 1 else given[:, 0]
    return DeviceVector(library, _fitting(library, flat, np.float64, what, "was", notes), shape, v)


def guess(x0: Any, right: DeviceVector, rows: int, notes: list[str]) -> DeviceVector:
    """A vector of b's kind with the guess in it, whose place the solution will take."""
    if x0 is None:
        return right.zeros()
    library = right.library
    there = vector(x0, rows, "x0", notes, library.gpu)
    if there is not None:
        return right.another(library.copy(library.view(there.array), np.float64))
    value = _host_vector(x0, rows, "x0", notes).values
    notes.append(f"x0 was brought to the GPU, where b is ({1e-6 * value.nbytes:.1f} MB)")
    return right.another(library.copy(value, np.float64))


def _fitting(library: Any, v: Any, dtype: type, what: str, verb: str, notes: list[str]) -> Any:
    """v itself, or its copy on the solver's GPU, of the type and without gaps."""
    had, gpu = library.dtype(v), library.gpu_of(v)
    if had == dtype and gpu == library.gpu and library.contiguous(v):
        return v
    if gpu != library.gpu:
        notes.append(f"{what} {verb} copied from GPU {gpu} to GPU {library.gpu}, where the solver works")
    if had != dtype:
        notes.append(f"{what} {verb} converted from {had} to {np.dtype(dtype)} on the GPU")
    elif gpu == library.gpu:
        notes.append(f"{what} {verb} copied on the GPU, since there are gaps between entries")
    return library.copy(v, dtype)


class DeviceCsr:
    """A square CSR matrix on the solver's GPU: CuPy arrays, the caller's own wherever they will do. `pattern` has
    offsets and columns in host memory, once they have been brought."""

    def __init__(self, library: _CuPy, a: Any, kind: str, notes: list[str]):
        self.kind, self.notes, self._library = kind, notes, library
        self.rows = int(a.shape[0])
        self._offsets = _fitting(library, a.indptr, np.int32, "the matrix's offsets", "were", notes)
        self._columns = _fitting(library, a.indices, np.int32, "the matrix's columns", "were", notes)
        self._values = _fitting(library, a.data, np.float64, "the matrix's values", "were", notes)
        self.nnz = int(self._columns.size)
        if self._offsets.size != self.rows + 1 or self._values.size != self.nnz:
            raise Error(f"the matrix has {self.rows} rows, {self._offsets.size} offsets, {self.nnz} columns and "
                        f"{self._values.size} values of entries, which do not fit")
        self.pattern: Optional[tuple[np.ndarray, np.ndarray]] = None

    @property
    def bytes(self) -> int:
        return int(self._offsets.nbytes + self._columns.nbytes + self._values.nbytes)

    @property
    def places(self) -> tuple[Any, Any]:
        return self._library.place(self._offsets), self._library.place(self._columns)

    @property
    def values(self) -> tuple[int, int, int]:
        return self._library.place(self._values)

    def bring_pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """Offsets and columns in host memory. Columns that do not ascend are sorted on the GPU, duplicates added."""
        if self.pattern is None:
            offsets, columns = self._offsets.get(), self._columns.get()
            # Where they are wrong the library says which row is.
            if offsets[0] == 0 and (np.diff(offsets) >= 0).all() and offsets[-1] <= len(columns):
                probe = sparse.csr_array((np.zeros(len(columns), np.int8), columns, offsets),
                                         shape=(self.rows, self.rows), copy=False)
                if not probe.has_canonical_format or offsets[-1] < len(columns):
                    offsets, columns = self._put_in_order(int(offsets[-1]))
            self.pattern = offsets, columns
            self.notes.append("the matrix's pattern was brought to host memory, where it is analysed "
                              f"({1e-6 * (offsets.nbytes + columns.nbytes):.1f} MB)")
        return self.pattern

    def _put_in_order(self, nnz: int) -> tuple[np.ndarray, np.ndarray]:
        from cupyx.scipy.sparse import csr_matrix

        with self._library.here():
            a = csr_matrix((self._values[:nnz], self._columns[:nnz], self._offsets), shape=(self.rows, self.rows),
                           copy=True)
            a.sum_duplicates()
        self._offsets, self._columns, self._values = a.indptr, a.indices, a.data
        lost, self.nnz = nnz - int(a.data.size), int(a.data.size)
        self.notes.append("the matrix was copied on the GPU to sort its columns within rows" +
                          (f"; {lost:,} duplicate entries were added to those of the same place" if lost else ""))
        return a.indptr.get(), a.indices.get()


def matrix(a: Any, gpu: int) -> Optional[DeviceCsr]:
    """CuPy's sparse matrix, for a solver that works on GPU number `gpu`. None for what is none. Raises what
    `_arrays.matrix` raises."""
    if gpu < 0 or not _is_sparse(a):
        return None
    _require_real(np.dtype(a.dtype), "the matrix")
    _require_square(a.shape)
    library, kind = _CuPy(gpu), type(a).__name__
    notes: list[str] = []
    if a.format != "csr":
        notes.append(f"the matrix was converted to CSR on the GPU: it came as {a.format.upper()}")
        with a.data.device:
            if np.dtype(a.dtype) != np.float64:  # CuPy adds duplicates in the type that it finds
                notes.append(f"the matrix's values were converted from {a.dtype} to float64 on the GPU")
                a = a.astype(np.float64)
            a = a.tocsr()
    return DeviceCsr(library, a, kind, notes)
