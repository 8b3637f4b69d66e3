# SPDX-License-Identifier: Apache-2.0
"""krilu's preconditioners as LinearOperators: they serve krilu.cg and its like, and every solver of
scipy.sparse.linalg."""
from __future__ import annotations

import threading
from typing import Any, Optional

import numpy as np
from scipy.sparse.linalg import LinearOperator

from ._arrays import Csr, matrix
from ._options import checked
from ._solver import Solver

# What a preconditioner's options may be; all others are a solve's.
_OPTIONS = ("triangular", "ordering", "scaling", "device", "threads", "shift")


class Preconditioner(LinearOperator):
    """z = M^-1 r, where M is an incomplete factorisation of a matrix (or its diagonal).

    What `krilu.jacobi`, `dilu`, `dic`, `ilu0`, `ic0`, `iluk`, `ilut`, `block_ilu`, `ras` and `preconditioner` return: a
    ``scipy.sparse.linalg.LinearOperator`` of shape (n, n) and dtype float64. ``M.update(A)`` takes new values of the
    same pattern. `krilu.cg` and its like keep a solver of their own in it, for the next call.

    Attributes
    ----------
    precond : str
        The library's name for it: "ilut:10,0.01".
    options : dict
        Options that were given.
    """

    def __init__(self, A: Any, precond: str, **options: Any):
        for name in options:
            if name not in _OPTIONS:
                raise TypeError(f"a preconditioner has no option {name!r}: there are {', '.join(_OPTIONS)}")
        options.setdefault("device", "host")
        # BiCGStab, since it serves all preconditioners and needs few vectors: nothing is solved here.
        self._solver = Solver(solver="bicgstab", precond=precond, **options)
        self.precond = precond
        self.options = options
        # Of krilu.cg and its like: matrix and options, and the solver that they made of them.
        self._last: Optional[tuple[Any, Solver]] = None
        # A lock of `_last`, from its tolerances set to its solve ended, and one of `_solver` and `_matrix` together,
        # for one call each. No call that holds the first asks for the second, so threads cannot wait for each other
        # in a circle, nor where a signal handler comes back here while the main thread holds the second.
        self._lock = threading.RLock()
        self._own = threading.RLock()
        a = matrix(A)
        self._solver._take("setup", a)
        self._matrix = a.digest
        super().__init__(np.dtype(np.float64), (a.rows, a.rows))

    def update(self, A: Any) -> None:
        """Forms the preconditioner anew from values of the same pattern. Raises what `krilu.Solver.update` does.

        It does not wait for `krilu.cg` and its like that solve with it in other threads: in krilu's own loop they end
        with the matrix that they began with.
        """
        a = matrix(A)
        digest = a.digest
        with self._own:
            self._last = None  # not needed any more; what is kept meanwhile says of which matrix it is
            self._matrix = b""
            self._solver._take("factor", a)
            self._matrix = digest

    def _is_of(self, a: Csr) -> bool:
        """Whether it was made from a. Waits for an update that is under way."""
        digest = a.digest
        with self._own:
            return digest == self._matrix

    @property
    def bytes(self) -> int:
        """Bytes held."""
        return self._solver.bytes

    def _matvec(self, x: np.ndarray) -> np.ndarray:
        if np.iscomplexobj(x):
            return self._matvec(x.real) + 1j * self._matvec(x.imag)
        with self._own:
            return self._solver.apply(x)

    def _rmatvec(self, x: np.ndarray) -> np.ndarray:
        if self.precond in ("none", "jacobi", "dic", "ic0"):  # symmetric
            return self._matvec(x)
        raise NotImplementedError(f"krilu has no transposed {self.precond}: take a method that needs none (cg, "
                                  "bicgstab, gmres, ...), or dic, ic0 or jacobi, which are symmetric")

    def __repr__(self) -> str:
        return f"<{self.shape[0]}x{self.shape[1]} krilu preconditioner {self.precond}>"


def preconditioner(A: Any, precond: str, **options: Any) -> Preconditioner:
    """A preconditioner by its name, as a LinearOperator.

    Parameters
    ----------
    A : (n, n) sparse array or matrix
    precond : str
        As `krilu.Solver` has it: "dilu", "iluk:2", "ras:64,2", "lu", ...
    shift : float
        Added to each |diagonal entry|, in units of its row's largest entry.
    ordering, scaling, triangular : str
        As `krilu.Solver` has them.
    device : str
        "host" (the default: SciPy's vectors are there), "cuda", "auto", ...
    threads : int
        0 takes all.

    Raises
    ------
    krilu.ZeroPivot
        A pivot is zero; the sentence names its row.
    krilu.Error
        A is not square, or holds NaN or infinity; an unknown name.
    TypeError
        A is complex, or has no entries to see.

    Examples
    --------
    >>> import krilu, numpy as np, scipy.sparse as sp, scipy.sparse.linalg as spla
    >>> A = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(100, 100), format="csr")
    >>> x, info = spla.bicgstab(A, np.ones(100), M=krilu.preconditioner(A, "iluk:1"))
    >>> info
    0
    """
    if precond == "auto":
        raise TypeError('"auto" chooses a method too, and is for krilu.solve: name a preconditioner')
    checked({"precond": precond}, "krilu.preconditioner")
    return Preconditioner(A, precond, **options)


def jacobi(A: Any, **options: Any) -> Preconditioner:
    """The diagonal of A. Options and errors as `preconditioner` has them."""
    return Preconditioner(A, "jacobi", **options)


def dilu(A: Any, **options: Any) -> Preconditioner:
    """(E + L) E^-1 (E + U) with A's own triangles L and U, and E so that the diagonal is A's: OpenFOAM's DILU.

    Source: Pommerell, Solution of large unsymmetric systems of linear equations (1992); Wang and Liu, GPU-based
    parallel DILU preconditioning technique (2022). Options and errors as `preconditioner` has them.
    """
    return Preconditioner(A, "dilu", **options)


def dic(A: Any, **options: Any) -> Preconditioner:
    """DILU of a symmetric matrix, which it insists on (krilu.Error): for cg. Options as `preconditioner` has them."""
    return Preconditioner(A, "dic", **options)


def ilu0(A: Any, **options: Any) -> Preconditioner:
    """Gaussian elimination on A's pattern, without fill. Options and errors as `preconditioner` has them.

    Source: Meijerink and van der Vorst, Math. Comp. 31 (1977).
    """
    return Preconditioner(A, "ilu0", **options)


def ic0(A: Any, **options: Any) -> Preconditioner:
    """Incomplete Cholesky without fill and without square roots, of a symmetric matrix of either sign: for cg.

    Options and errors as `preconditioner` has them. Source: Meijerink and van der Vorst, Math. Comp. 31 (1977).
    """
    return Preconditioner(A, "ic0", **options)


def iluk(A: Any, level: int = 1, **options: Any) -> Preconditioner:
    """Incomplete LU with fill up to a level. Options and errors as `preconditioner` has them.

    Source: Saad, Iterative methods for sparse linear systems (2003), section 10.3.3.
    """
    return Preconditioner(A, f"iluk:{_whole('level', level)}", **options)


def ilut(A: Any, most: int = 10, tolerance: float = 0.01, **options: Any) -> Preconditioner:
    """Incomplete LU with at most `most` entries a row in each factor, and small ones dropped.

    Multipliers below `tolerance` are dropped, and entries of U below `tolerance` times their row's norm. Options and
    errors as `preconditioner` has them. Source: Saad, Numer. Linear Algebra Appl. 1 (1994).
    """
    return Preconditioner(A, f"ilut:{_whole('most', most)},{float(tolerance)!r}", **options)


def block_ilu(A: Any, parts: int = 0, local: str = "ilu0", **options: Any) -> Preconditioner:
    """A factorisation for each of `parts` parts of the graph; 0 lets krilu choose their number.

    `local` is "dilu", "ilu0", "iluk[:LEVEL]" or "ilut[:MOST,TOLERANCE]". Options and errors as `preconditioner` has
    them.
    """
    return Preconditioner(A, f"block-ilu:{_whole('parts', parts)},{local}", **options)


def ras(A: Any, parts: int = 0, overlap: int = 1, local: str = "ilu0", **options: Any) -> Preconditioner:
    """Restricted additive Schwarz: `parts` parts (0: krilu chooses), extended by `overlap` layers of neighbours.

    `local` as `block_ilu` has it; options and errors as `preconditioner` has them. Source: Cai and Sarkis, SIAM J. Sci.
    Comput. 21 (1999).
    """
    return Preconditioner(A, f"ras:{_whole('parts', parts)},{_whole('overlap', overlap)},{local}", **options)


def _whole(name: str, value: Any) -> int:
    try:
        return value.__index__()
    except AttributeError:
        raise TypeError(f"{name} is a whole number, not {value!r}") from None
