# SPDX-License-Identifier: Apache-2.0
"""What callers hand over, in the types that the library takes: CSR with 32-bit indices and doubles, vectors of doubles,
in host memory. What stands on the GPU that the solver works on `_device` takes where it is.

Whatever had to be converted or copied for that is said in `notes`; nothing of the caller's is ever changed.
"""
from __future__ import annotations

import copy
import functools
import hashlib
import warnings
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import numpy as np
import scipy.sparse as sparse

from ._krilu import Error

_MOST = 2**31 - 1
_CPU = 1  # DLPack's device types: kDLCPU; what is pinned (3) lies in host memory too
_CUDA_HOST = 3


@dataclass
class Csr:
    """A square matrix as krilu has it."""

    offsets: np.ndarray  # int32, rows + 1
    columns: np.ndarray  # int32, nnz, ascending within a row
    values: np.ndarray  # float64, nnz
    kind: str  # what it was: "csr_array"
    notes: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return len(self.offsets) - 1

    @property
    def nnz(self) -> int:
        return int(self.offsets[-1])

    @property
    def bytes(self) -> int:
        return self.offsets.nbytes + self.columns.nbytes + self.values.nbytes

    @functools.cached_property
    def digest(self) -> bytes:
        """Tells matrices apart without holding them: 128 bits of BLAKE2b over pattern and values."""
        h = hashlib.blake2b(digest_size=16)
        for array in (self.offsets, self.columns[:self.nnz], self.values[:self.nnz]):
            h.update(np.ascontiguousarray(array).data)
        return h.digest()

    def scipy(self) -> sparse.csr_array:
        """The same arrays as SciPy has them."""
        return sparse.csr_array((self.values, self.columns, self.offsets), shape=(self.rows, self.rows), copy=False)


def _library_of(x: Any) -> str:
    return type(x).__module__.split(".")[0]


def _on_device(x: Any) -> bool:
    """Whether an array lies where the host cannot reach it."""
    if isinstance(x, np.ndarray):
        return False
    if hasattr(x, "__dlpack_device__"):
        return int(x.__dlpack_device__()[0]) not in (_CPU, _CUDA_HOST)
    return hasattr(x, "__cuda_array_interface__")


def _to_host(x: Any, what: str) -> np.ndarray:
    """An array of a GPU, copied: by its own library's way where it is known, else by DLPack."""
    if _library_of(x) == "torch":
        return x.detach().cpu().numpy()
    if hasattr(x, "get") and _library_of(x) in ("cupy", "cupyx"):
        return x.get()
    if hasattr(x, "copy_to_host"):  # Numba
        return x.copy_to_host()
    if hasattr(x, "__dlpack__"):
        try:
            return np.from_dlpack(x, device="cpu", copy=True)
        except (TypeError, BufferError, ValueError, RuntimeError, AttributeError):
            pass  # an older protocol
    try:
        import cupy
    except ImportError:
        raise TypeError(f"{what} is a {type(x).__module__}.{type(x).__name__} on a GPU, which needs CuPy to be "
                        "brought to the host: install CuPy, or give a NumPy array") from None
    return cupy.asarray(x).get()


def _like(b: Any) -> Callable[[np.ndarray], Any]:
    """How an array of NumPy's becomes one of b's kind, on b's device. An array that says only that it lies on a GPU is
    answered by one of CuPy's."""
    library = _library_of(b)
    if library == "torch":
        import torch

        return lambda x: torch.from_numpy(x).to(b.device)
    if library == "jax" or library == "jaxlib":
        import jax

        return lambda x: jax.device_put(x, b.device)
    if library == "numba":
        from numba import cuda

        return cuda.to_device
    if library == "cupy" or _on_device(b):
        try:
            import cupy
        except ImportError:
            raise TypeError(f"a {type(b).__module__}.{type(b).__name__} on a GPU needs CuPy, for krilu to return x as "
                            "one: install CuPy, or give a NumPy array") from None

        def to_cupy(x):
            with b.device if library == "cupy" else cupy.cuda.Device():
                return cupy.asarray(x)

        return to_cupy
    return lambda x: x


def _require_real(dtype: np.dtype, what: str) -> None:
    if dtype.kind == "c":
        raise TypeError(f"{what} is complex ({dtype}), and krilu solves real systems: take scipy.sparse.linalg, or "
                        "write the system of real and imaginary parts")
    if dtype.kind not in "fiub":
        raise TypeError(f"{what} holds {dtype}, not numbers: krilu computes with float64")


def _require_unmasked(v: Any, what: str) -> None:
    if np.ma.is_masked(v):
        raise Error(f"{what} has masked entries: krilu knows no missing values")


def _require_shape(shape: tuple[int, ...], rows: int, what: str) -> None:
    if shape not in ((rows,), (rows, 1)):
        raise Error(f"{what} has the shape {shape}, and the matrix {rows} rows: krilu solves for one right-hand "
                    f"side of shape ({rows},) or ({rows}, 1) at a time")


@dataclass
class Vector:
    """A vector as krilu has it, and how its like is given back."""

    values: np.ndarray  # float64, contiguous
    dtype: np.dtype  # what it was
    shape: tuple[int, ...]
    give_back: Callable[[np.ndarray], Any]

    def like(self, x: np.ndarray) -> Any:
        """x in this vector's shape, and as an array of its library on its device."""
        return self.give_back(x.reshape(self.shape))


def vector(v: Any, rows: int, what: str, notes: list[str], *, writable: bool = False) -> Vector:
    """A vector of `rows` entries, of shape (rows,) or (rows, 1). With `writable` it is always a copy.

    Raises krilu.Error for another shape, TypeError for complex values and for what is no array of numbers.
    """
    if sparse.issparse(v):
        raise TypeError(f"{what} is sparse: give {what}.toarray().ravel()")
    give_back: Callable[[np.ndarray], Any] = lambda x: x
    if _on_device(v):
        give_back = _like(v)
        given = np.asarray(_to_host(v, what))
        notes.append(f"{what} was brought from the GPU to host memory ({1e-6 * given.nbytes:.1f} MB), where this "
                     "call takes its vectors")
    elif isinstance(v, np.ndarray):
        given = v
    elif hasattr(v, "__dlpack__"):
        give_back = _like(v)
        given = np.from_dlpack(v.detach() if _library_of(v) == "torch" else v)
    else:
        given = np.asarray(v)
    _require_unmasked(given, what)
    given = np.asarray(given)
    _require_real(given.dtype, what)
    _require_shape(given.shape, rows, what)
    flat = given.reshape(rows) if given.flags.c_contiguous or given.ndim == 1 else given[:, 0]
    if flat.dtype != np.float64 or not flat.dtype.isnative:
        notes.append(f"{what} was converted from {given.dtype} to float64")
    elif not (flat.flags.c_contiguous and flat.flags.aligned):
        notes.append(f"{what} was copied, since it is not contiguous in memory")
    values = np.require(flat, np.float64, ["C_CONTIGUOUS", "ALIGNED"])
    if writable and (values is v or np.may_share_memory(values, given)):
        values = values.copy()
    return Vector(values, given.dtype, given.shape, give_back)


def entries_of(a: Any) -> Optional[Any]:
    """The matrix behind a: itself, or what aslinearoperator was given; None where there is none."""
    if sparse.issparse(a) or isinstance(a, np.ndarray):
        return a
    if _library_of(a) == "cupyx" and hasattr(a, "get"):
        return a
    if _on_device(a) or isinstance(a, (list, tuple)):
        return a
    if type(a).__module__.startswith("scipy.sparse.linalg") and type(a).__name__ == "MatrixLinearOperator":
        if hasattr(a, "psolve"):  # SciPy takes it for a preconditioner
            return None
        return entries_of(a.A)
    if hasattr(a, "__array__") and not hasattr(a, "matvec"):
        return a
    return None


def matrix(a: Any) -> Csr:
    """A square matrix in CSR. The arrays are the caller's own wherever they will do.

    Raises krilu.Error where it is not square or too large, TypeError for complex values, and for what has no entries.
    """
    notes: list[str] = []
    found = entries_of(a)
    if found is None:
        raise TypeError(f"a {type(a).__module__}.{type(a).__name__} has no entries that krilu can see: give a SciPy "
                        "sparse array, or use krilu.cg, bicgstab or gmres, which take LinearOperators")
    a = found
    kind = type(a).__name__
    if not sparse.issparse(a) and (_library_of(a) == "cupyx" or _on_device(a)):
        a = _to_host(a, "the matrix")
        notes.append("the matrix was brought from the GPU to host memory, where this call takes it")
    _require_unmasked(a if not sparse.issparse(a) else getattr(a, "data", None), "the matrix")
    if not sparse.issparse(a):
        a = np.asarray(a)
        _require_real(a.dtype, "the matrix")
        _require_square(a.shape)
        notes.append(f"the matrix was dense ({kind}), and was converted to CSR")
        a = sparse.csr_array(a)
    _require_real(np.dtype(a.dtype), "the matrix")
    _require_square(a.shape)
    if a.nnz > _MOST:
        raise Error(f"the matrix has {a.nnz:,} nonzeros: one matrix holds fewer than 2^31")
    if a.shape[0] >= _MOST:
        raise Error(f"the matrix has {a.shape[0]:,} rows: one matrix holds fewer than 2^31")
    came_in = np.dtype(a.dtype)
    if a.format != "csr":
        notes.append(f"the matrix was converted to CSR: it came as {a.format.upper()}")
        a = _in_doubles(a)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sparse.SparseEfficiencyWarning)
            a = a.tocsr()
    offsets, columns, values = a.indptr, a.indices, a.data
    if len(offsets) != a.shape[0] + 1:
        raise Error(f"the matrix has {a.shape[0]} rows and {len(offsets)} offsets, which should be one more than rows")
    if columns.ndim != 1 or values.ndim != 1 or len(values) < offsets[-1] or len(columns) < offsets[-1]:
        raise Error(f"the matrix's last offset is {offsets[-1]}, and it has {len(columns)} columns and {len(values)} "
                    "values of entries")
    if came_in != np.float64:
        notes.append(f"the matrix's values were converted from {came_in} to float64")
        values = values.astype(np.float64, copy=False)
    # SciPy remembers what it found of a matrix, and does not see that its arrays have changed since: look anew.
    ordered = sparse.csr_array((values, columns, offsets), shape=a.shape, copy=False)
    if _offsets_are_sound(ordered) and not ordered.has_canonical_format:
        before = ordered.nnz
        ordered = ordered.copy()
        ordered.sum_duplicates()
        lost = before - ordered.nnz
        notes.append("the matrix was copied to sort its columns within rows" +
                     (f"; {lost:,} duplicate entries were added to those of the same place" if lost else ""))
        offsets, columns, values = ordered.indptr, ordered.indices, ordered.data
    if offsets.dtype != np.int32 or columns.dtype != np.int32:
        wide = sorted({str(x.dtype) for x in (offsets, columns) if x.dtype != np.int32})
        notes.append(f"the matrix's indices were converted from {', '.join(wide)} to int32")
        if len(columns) and (columns.max() > _MOST or columns.min() < 0):
            raise Error("the matrix has columns that are none of its own: an index is negative or beyond 2^31")
    if came_in == np.float64 and not all(x.flags.c_contiguous and x.flags.aligned for x in (offsets, columns, values)):
        notes.append("the matrix's arrays were copied, since they are not contiguous in memory")
    return Csr(np.require(offsets, np.int32, ["C_CONTIGUOUS", "ALIGNED"]),
               np.require(columns, np.int32, ["C_CONTIGUOUS", "ALIGNED"]),
               np.require(values, np.float64, ["C_CONTIGUOUS", "ALIGNED"]), kind, notes)


def _in_doubles(a: Any) -> Any:
    """A matrix of SciPy's with values of float64, whose other arrays are a's: on the way to CSR SciPy adds what stands
    in one place twice, in the type that it finds. LIL and DOK have nothing twice."""
    if a.dtype == np.float64 or a.format in ("lil", "dok"):
        return a
    values, a = a.data.astype(np.float64), copy.copy(a)
    a.data = values
    return a


def _offsets_are_sound(a: sparse.csr_array) -> bool:
    """SciPy's own loops trust them. Where they are wrong the library says which row is."""
    return bool(a.indptr[0] == 0 and (np.diff(a.indptr) >= 0).all() and a.indptr[-1] <= len(a.indices))


def _require_square(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise Error(f"the matrix has the shape {shape}: krilu solves square systems")
