# SPDX-License-Identifier: Apache-2.0
"""Solver, and solve for the hurried."""
from __future__ import annotations

import functools
import threading
import time
from typing import Any, Callable, NamedTuple, Optional, Union

import numpy as np

from . import _device, _krilu
from ._arrays import Csr, matrix, vector
from ._options import DEFAULTS, checked, in_python_words
from ._report import Report


class Counts(NamedTuple):
    """How often each step of a Solver ran."""

    analyses: int
    factorisations: int
    solves: int


def _in_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _spoken(call: Callable, *arguments: Any, **options: Any) -> Any:
    """The call's result. The library's errors are put in this package's words."""
    try:
        return call(*arguments, **options)
    except _krilu.Error as error:
        error.args = (in_python_words(str(error)),)
        raise


class _Library:
    """The library's Solver: all that is asked of it goes through here."""

    def __init__(self, **options: Any):
        self._solver = _spoken(_krilu.Solver, **options)

    def __getattr__(self, name: str) -> Callable:
        return functools.partial(_spoken, getattr(self._solver, name))


class _Sides:
    """b, and x with the guess in it, as the library takes them: on the solver's GPU where b is there, else in host
    memory."""

    def __init__(self, b: Any, x0: Any, rows: int, gpu: int):
        start = time.perf_counter()
        self.notes: list[str] = []
        self.there = _device.vector(b, rows, "b", self.notes, gpu)
        if self.there is not None:
            self.x_there = _device.guess(x0, self.there, rows, self.notes)
        else:
            self.right = vector(b, rows, "b", self.notes)
            self.x = np.zeros(rows) if x0 is None else vector(x0, rows, "x0", self.notes, writable=True).values
        self.seconds = time.perf_counter() - start

    def run(self, solver: Any) -> tuple[Any, dict[str, Any]]:
        if self.there is not None:
            result = solver.solve_there(_in_main(), self.there.place, self.x_there.place)
            return self.x_there.handed_over(), result
        result = solver.solve(_in_main(), self.right.values, self.x)
        return self.right.like(self.x), result


class Solver:
    """Solves A x = b again and again: analyse once for a sparsity pattern, update for new values, solve for each b.

    Parameters
    ----------
    solver : str
        "auto", "cg", "bicgstab", "gmres", "fgmres" or "gmres-ir". "auto" chooses by the matrix; where `precond` is
        "auto" too, it goes up a ladder of ever stronger methods until one arrives.
    precond : str
        "auto", "none", "jacobi", "dilu", "dic", "ilu0", "ic0", "iluk[:LEVEL]", "ilut[:MOST,TOLERANCE]",
        "block-ilu[:PARTS[,LOCAL]]", "ras[:PARTS[,OVERLAP[,LOCAL]]]" (LOCAL is dilu, ilu0, iluk.. or ilut..) or "lu".
    device : str
        "auto" (a GPU where there is one and krilu was built for it), "host", "cuda", "cuda:N" or "emulated". "auto" and
        "cuda" take the GPU of the first matrix that is analysed, where it is CuPy's, else GPU 0.
    rtol, atol : float
        The solve ends where ||b - A x||_2 <= max(rtol ||b||_2, atol).
    norm : str
        "true2", as above, or "openfoam": OpenFOAM's residual, for cg and bicgstab.
    max_iterations : int
        Most iterations of a solve.
    restart : int
        Basis vectors of GMRES before a restart.
    threads : int
        Of the host; 0 takes all.
    ordering : str
        Of the elimination: "auto", "natural", "rcm", "multicolour", "block-multicolour[:ROWS]" or "metis[:PARTS]".
    scaling : str
        Of what ilu0, iluk and ilut factor, on the host: "none", "rows", "both" or "matching".
    triangular : str
        How triangles are swept: "auto", "serial", "level-set", "sync-free" or "tiled" (GPU).
    shift : float
        Added to each |diagonal entry| when the preconditioner is formed, in units of its row's largest entry.
    precision : str
        Of the inner solves: "auto", "fp64", "fp32", "fp32/fp16" or "fp32/bf16". Residual and answer are in double.
    basis : str
        What an inner GMRES keeps its basis in: "auto", "fp64", "fp32", "fp16" or "bf16".
    inner_iterations, outer_iterations : int
        Most iterations of an inner solve, and most inner solves in one precision; 0 for the method's own.
    inner_tolerance : float
        Of an inner solve, relative; 0 follows the outer residual.

    Raises
    ------
    krilu.Error
        A name that is unknown, with the nearest that is known; a number out of range; a device that is not there.
    TypeError
        An option that does not exist, or one of another type.

    Notes
    -----
    All calls release Python's global lock. Threads that share a Solver take turns. Ctrl-C ends a solve after its
    current iteration; analyse and update are finished first.

    What is on the GPU that the solver works on is taken in place: CuPy's CSR matrices of doubles (their pattern goes to
    the host once, where it is analysed), and contiguous vectors of doubles of CuPy, PyTorch, or any library with DLPack
    or ``__cuda_array_interface__`` where CuPy is installed. Work in their library's current stream is waited for, and x
    is ready for any stream. The report's notes name what was copied or converted even so.

    Examples
    --------
    >>> import krilu, numpy as np, scipy.sparse as sp
    >>> n = 1000
    >>> A = sp.diags_array([-np.ones(n - 1), 2.1 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1], format="csr")
    >>> b = np.ones(n)
    >>> solver = krilu.Solver(solver="cg", precond="dic", rtol=1e-10)
    >>> solver.analyse(A)
    >>> x = None
    >>> for step in range(3):
    ...     A.setdiag(2.1 + step)
    ...     solver.update(A)
    ...     x, report = solver.solve(b, x)
    >>> report.converged, solver.counts
    (True, Counts(analyses=1, factorisations=3, solves=3))
    """

    def __init__(self, *, solver: str = "auto", precond: str = "auto", device: str = "auto", rtol: float = 1e-8,
                 atol: float = 0.0, norm: str = "true2", max_iterations: int = 10000, restart: int = 30,
                 threads: int = 0, ordering: str = "auto", scaling: str = "none", triangular: str = "auto",
                 shift: float = 0.0, precision: str = "auto", basis: str = "auto", inner_iterations: int = 0,
                 outer_iterations: int = 0, inner_tolerance: float = 0.0):
        given = {name: value for name, value in locals().items() if name != "self"}
        self._options = checked(given, "krilu.Solver")
        self._solver = _Library(**self._options)
        self._facts: Optional[dict[str, Any]] = None
        self._analysed_there = False  # the matrix was on the GPU

    def analyse(self, A: Any) -> None:
        """Studies A's pattern: ordering, levels, storage. `update` comes next.

        Parameters
        ----------
        A : (n, n) sparse array or matrix
            SciPy's CSR is taken as it is, and CuPy's by a solver that works on its GPU; other formats and dense arrays
            are converted. Its values serve to choose what was left to "auto".

        Raises
        ------
        krilu.Error
            A is not square, is no valid CSR matrix, or is too large for the device.
        TypeError
            A is complex, or has no entries to see (a LinearOperator).
        """
        self._take("analyse", A)

    def update(self, A: Any) -> None:
        """Takes values of the analysed pattern and forms the preconditioner; no new analysis.

        Parameters
        ----------
        A : (n, n) sparse array or matrix
            Of the very pattern that was analysed: explicit zeros belong to it.

        Raises
        ------
        krilu.ZeroPivot
            The factorisation met a pivot of zero; the sentence names its row.
        krilu.Error
            Another pattern, NaN or infinity, or no analyse before.
        """
        self._take("factor", A)

    def setup(self, A: Any) -> None:
        """analyse and update in one; to a GPU the values travel once. Raises what they raise."""
        self._take("setup", A)

    def _go_to(self, *arrays: Any) -> None:
        """To the GPU of these arrays, where the choice of one is left and nothing has been done yet."""
        if self._options["device"] not in ("auto", "cuda") or self._solver.gpu() < 0 or self.counts != (0, 0, 0):
            return
        gpu = _device.gpu_of(*arrays)
        if gpu is not None and gpu != self._solver.gpu():
            self._solver = _Library(**{**self._options, "device": f"cuda:{gpu}"})

    def _seen(self, A: Any) -> Union[Csr, _device.DeviceCsr]:
        """A as the library takes it."""
        if isinstance(A, (Csr, _device.DeviceCsr)):
            return A
        self._go_to(A)
        return _device.matrix(A, self._solver.gpu()) or matrix(A)

    def _take(self, step: str, A: Any) -> None:
        start = time.perf_counter()
        # Values on the GPU are those of a pattern that came from there.
        a = self._seen(A) if step != "factor" or self._analysed_there or isinstance(A, Csr) else matrix(A)
        main = _in_main()
        there = isinstance(a, _device.DeviceCsr)
        if step == "factor" and there:
            if not self._solver.has_pattern(main, *a.places):
                a.bring_pattern()
                if not self._solver.has_pattern(main, *a.places):
                    raise _krilu.Error("the matrix has another pattern than the one that was analysed: call analyse "
                                       "first")
        elif there:
            a.bring_pattern()
        seconds = time.perf_counter() - start
        if step != "factor":
            self._facts = None
            self._analysed_there = False
        if not there:
            getattr(self._solver, step)(main, a.offsets, a.columns, a.values)
        elif step == "factor":
            self._solver.factor_there(main, a.values)
        else:
            getattr(self._solver, f"{step}_there")(main, *a.pattern, a.values)
        if step != "factor":
            self._analysed_there = there
        self._facts = {"name": a.kind, "rows": a.rows, "nnz": a.nnz, "matrix_bytes": a.bytes, "convert": seconds,
                       "notes": a.notes}

    def solve(self, b: Any, x0: Any = None) -> tuple[Any, Report]:
        """Solves A x = b.

        Parameters
        ----------
        b : (n,) or (n, 1) array
            Right-hand side.
        x0 : (n,) or (n, 1) array, optional
            Initial guess, zero by default. It is not changed.

        Returns
        -------
        x : array
            The best approximation that was found, float64, in b's shape; where b is an array of a GPU (CuPy, PyTorch,
            or any with DLPack or ``__cuda_array_interface__``), so is x, a new one.
        report : Report
            How it went; ``report.converged`` says whether the tolerance is met. Not converging raises nothing.

        Raises
        ------
        krilu.Error
            b or x0 has another shape, or holds NaN or infinity; update was not called.
        TypeError
            b or x0 is complex, or holds no numbers.
        KeyboardInterrupt
            Ctrl-C: the solve ended after its current iteration.
        """
        return self._run(_Sides(b, x0, self._rows("solve"), self._solver.gpu()))

    def _rows(self, step: str) -> int:
        """Of the analysed matrix, for a step that needs one."""
        rows = self._solver.rows()
        if rows == 0 and self.counts.analyses == 0:
            raise _krilu.Error(f"{step} comes after analyse and update: call analyse(A) and update(A) first, or "
                               "setup(A), which is both")
        return rows

    def _run(self, sides: _Sides) -> tuple[Any, Report]:
        x, result = sides.run(self._solver)
        facts = dict(self._facts or {})
        facts["notes"] = facts.get("notes", []) + sides.notes
        facts["convert"] = facts.get("convert", 0.0) + sides.seconds
        return x, Report._of(result, facts, self._options)

    def apply(self, r: Any) -> Any:
        """z = M^-1 r: the preconditioner that update formed, once.

        Parameters
        ----------
        r : (n,) or (n, 1) array

        Returns
        -------
        z : array
            float64, in r's shape and of its kind.

        Raises
        ------
        krilu.Error
            r has another shape, or update was not called.
        """
        rows = self._rows("apply")
        there = _device.vector(r, rows, "r", [], self._solver.gpu())
        if there is not None:
            z_there = there.zeros()
            self._solver.apply_there(_in_main(), there.place, z_there.place)
            return z_there.handed_over()
        given = vector(r, rows, "r", [])
        z = np.empty(len(given.values))
        self._solver.apply(_in_main(), given.values, z)
        return given.like(z)

    def set_tolerances(self, rtol: float, atol: float = 0.0) -> None:
        """The tolerances of the next solves. Raises krilu.Error for negative ones."""
        changed = checked({**self._options, "rtol": rtol, "atol": atol}, "krilu.Solver.set_tolerances")
        self._solver.set_tolerances(changed["rtol"], changed["atol"])
        self._options = changed

    @property
    def options(self) -> dict[str, Any]:
        """A copy of all options."""
        return dict(self._options)

    @property
    def explanation(self) -> list[str]:
        """What was chosen and why, a line each."""
        return [in_python_words(line) for line in self._solver.explanation()]

    @property
    def counts(self) -> Counts:
        """How often each step ran: updating values repeats no analysis."""
        return Counts(*self._solver.counts())

    @property
    def bytes(self) -> int:
        """Bytes held: the copy of the matrix, the preconditioner and vectors."""
        return self._solver.bytes()

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n) of the analysed matrix."""
        return (self._solver.rows(),) * 2

    def __repr__(self) -> str:
        named = [f"{name}={value!r}" for name, value in self._options.items() if value != DEFAULTS[name]]
        return f"krilu.Solver({', '.join(named)})"


def solve(A: Any, b: Any, x0: Any = None, *, solver: str = "auto", precond: str = "auto", device: str = "auto",
          **options: Any) -> tuple[Any, Report]:
    """Solves A x = b in one call.

    Parameters
    ----------
    A : (n, n) sparse array or matrix
        SciPy's CSR is taken as it is, and CuPy's on the GPU that it is on; CSC, other formats and dense arrays are
        converted, and the report's notes say so.
    b : (n,) or (n, 1) array
        Right-hand side.
    x0 : (n,) or (n, 1) array, optional
        Initial guess, zero by default. It is not changed.
    solver, precond, device : str
        "auto", or a name: see `krilu.Solver`. Where device is "auto" or "cuda", A and b choose the GPU that they are on.
    **options
        All other options of `krilu.Solver`: rtol (1e-8), atol, max_iterations (10000), restart, ordering, ...

    Returns
    -------
    x : array
        The best approximation that was found, float64, in b's shape, and on the GPU where b is.
    report : Report
        How it went; ``report.converged`` says whether the tolerance is met. Not converging raises nothing.

    Raises
    ------
    krilu.Error
        Bad shapes, names or values; a zero pivot (krilu.ZeroPivot) where the preconditioner was named.
    TypeError
        Complex values, a LinearOperator for A, an option that does not exist.
    KeyboardInterrupt
        Ctrl-C: the solve ended after its current iteration.

    Examples
    --------
    >>> import krilu, numpy as np, scipy.sparse as sp
    >>> A = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(100, 100), format="csr")
    >>> x, report = krilu.solve(A, np.ones(100), precond="dilu")
    >>> report.converged, bool(np.allclose(A @ x, 1))
    (True, True)
    """
    checked({"solver": solver, "precond": precond, "device": device, **options}, "krilu.solve")
    s = Solver(solver=solver, precond=precond, device=device, **options)
    start = time.perf_counter()
    s._go_to(A, b)
    a = s._seen(A)
    seconds = time.perf_counter() - start
    sides = _Sides(b, x0, a.rows, s._solver.gpu())  # what is wrong with them is said before any work
    sides.seconds += seconds
    s._take("setup", a)
    return s._run(sides)
