# SPDX-License-Identifier: Apache-2.0
"""cg, bicgstab and gmres with the signatures of scipy.sparse.linalg.

krilu's own loop runs wherever it can do what was asked. It cannot where A is a LinearOperator, where M is one that
krilu did not make, and where a callback wants every iterate: then SciPy's own method runs, with krilu's preconditioner
if one was named, and a ScipyWarning says so.
"""
from __future__ import annotations

import contextlib
import warnings
from typing import Any, Callable, Optional, Union

import numpy as np
import scipy.sparse.linalg as scipy_linalg

from ._arrays import Csr, Vector, entries_of, matrix, vector
from ._preconditioners import _OPTIONS, Preconditioner, preconditioner
from ._solver import Solver

_MOST = 2**31 - 1


class ScipyWarning(UserWarning):
    """krilu.cg, bicgstab or gmres could not do in its own loop what was asked, and ran SciPy's."""


def cg(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Optional[int] = None,
       M: Any = None, callback: Optional[Callable] = None, **options: Any) -> tuple[np.ndarray, int]:
    """Solves A x = b by conjugate gradients, as ``scipy.sparse.linalg.cg`` does.

    Parameters
    ----------
    A : (n, n) sparse array, ndarray or LinearOperator
        Symmetric and definite, of either sign; real.
    b : (n,) or (n, 1) array
    x0 : (n,) or (n, 1) array, or "Mb", optional
        Initial guess, zero by default; "Mb" is M b. It is not changed.
    rtol, atol : float
        The solve ends where ||b - A x||_2 <= max(rtol ||b||_2, atol), by the true residual.
    maxiter : int, optional
        Most iterations, 10 n by default.
    M : optional
        Approximates A's inverse: None for none; a name ("dic", "ic0", "jacobi", ..., as `krilu.Solver` has them; "auto"
        chooses); what `krilu.dic(A)` and its like return; or any matrix or LinearOperator, as SciPy has it.
    callback : callable, optional
        ``callback(xk)`` after each iteration. With it SciPy's loop runs.
    **options
        Beyond SciPy's signature, those of `krilu.Solver` that are left: device, threads, ordering, shift, ...

    Returns
    -------
    x : (n,) ndarray
        float32 where A and b are both float32, else float64. krilu computes in double all the same.
    info : int
        0: converged; > 0: not converged, the iterations done; < 0: the recurrence broke down.

    Raises
    ------
    krilu.Error (a ValueError)
        Shapes that do not fit; NaN or infinity; a zero pivot; a negative `atol`.
    TypeError
        Complex values.
    KeyboardInterrupt
        Ctrl-C: the solve ended after its current iteration.

    Warns
    -----
    krilu.ScipyWarning
        SciPy's own cg ran: for a callback, a LinearOperator A, or an M that krilu did not make from this very A.

    Notes
    -----
    Source: Hestenes and Stiefel, J. Res. Nat. Bur. Standards 49 (1952).
    """
    return _solve("cg", A, b, x0, rtol, atol, maxiter, M, callback, options)


def bicgstab(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Optional[int] = None,
             M: Any = None, callback: Optional[Callable] = None, **options: Any) -> tuple[np.ndarray, int]:
    """Solves A x = b by BiCGStab, as ``scipy.sparse.linalg.bicgstab`` does.

    Parameters, returns, errors and warnings are those of `krilu.cg`; A is any real square matrix, and M = "dilu" or
    "ilu0" serve most. info is -10 where the recurrence broke down. Preconditioned from the right.

    Source: van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992).
    """
    return _solve("bicgstab", A, b, x0, rtol, atol, maxiter, M, callback, options)


def gmres(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, restart: Optional[int] = None,
          maxiter: Optional[int] = None, M: Any = None, callback: Optional[Callable] = None,
          callback_type: Optional[str] = None, **options: Any) -> tuple[np.ndarray, int]:
    """Solves A x = b by restarted GMRES, as ``scipy.sparse.linalg.gmres`` does.

    Parameters, returns, errors and warnings are those of `krilu.cg` but for these; A is any real square matrix.

    Parameters
    ----------
    restart : int, optional
        Iterations before a restart, min(20, n) by default.
    maxiter : int, optional
        Most restart cycles, 10 n by default, as in SciPy: at most ``maxiter * restart`` iterations. With a callback of
        type "legacy", which is SciPy's default still, it counts iterations.
    callback, callback_type : optional
        "x" (the iterate at each restart), "pr_norm" or "legacy" (the preconditioned residual's norm at each iteration).
        With a callback SciPy's loop runs.

    Returns
    -------
    x : (n,) ndarray
    info : int
        0: converged; > 0: not converged, the restart cycles done.

    Notes
    -----
    krilu preconditions from the right, and minimises the true residual; SciPy preconditions from the left. Both end by
    the true residual; iterations may differ by a few.

    Source: Saad and Schultz, SIAM J. Sci. Stat. Comput. 7 (1986).
    """
    if callback_type is not None and callback_type not in ("x", "pr_norm", "legacy"):
        raise ValueError(f"unknown callback_type {callback_type!r}: there are 'x', 'pr_norm' and 'legacy'")
    return _solve("gmres", A, b, x0, rtol, atol, maxiter, M, callback, options, restart=restart,
                  callback_type=callback_type)


def _solve(method: str, A: Any, b: Any, x0: Any, rtol: float, atol: float, maxiter: Optional[int], M: Any,
           callback: Optional[Callable], options: dict[str, Any], restart: Optional[int] = None,
           callback_type: Optional[str] = None) -> tuple[np.ndarray, int]:
    for name, other in (("solver", "the function's name"), ("precond", "M"), ("max_iterations", "maxiter"),
                        ("norm", "krilu.solve"), ("restart", "krilu.gmres")):
        if name in options:
            raise TypeError(f"krilu.{method} has no option {name!r}: that is {other} here")
    if atol is None or isinstance(atol, str) or atol < 0:
        raise ValueError(f"krilu.{method}: atol is {atol!r}, and must be a number from 0")
    for what, value in (("A", A), ("b", b)):
        if getattr(getattr(value, "dtype", None), "kind", "") == "c":
            raise TypeError(f"{what} is complex, and krilu solves real systems: take scipy.sparse.linalg.{method}")

    found = entries_of(A)
    a = matrix(found) if found is not None else None
    rows = a.rows if a is not None else A.shape[0]
    notes: list[str] = []
    right = vector(b, rows, "b", notes)
    guess = x0 if x0 is None or isinstance(x0, str) else vector(x0, rows, "x0", notes, writable=True).values
    if isinstance(guess, str) and guess != "Mb":
        raise ValueError(f"x0 is {guess!r}: the only name for a guess is 'Mb'")

    reason = _why_scipy(a, M, callback, A)
    if reason:
        warnings.warn(f"krilu.{method}: {reason}; SciPy's own {method} runs", ScipyWarning, stacklevel=3)
        return _by_scipy(method, A if a is None else a.scipy(), A, right, guess, rtol, atol, maxiter, M, callback,
                         options, restart, callback_type)

    assert a is not None  # _why_scipy has seen to that
    restart = min(20 if restart is None else restart, max(rows, 1))
    cycles = 10 * rows if maxiter is None else maxiter
    most = min(cycles * (restart if method == "gmres" else 1), _MOST)
    if isinstance(M, Preconditioner):
        options = {**M.options, **options}
        precond = M.precond
    else:
        precond = "none" if M is None else M
    options = {**options, "solver": method, "precond": precond, "restart": restart, "max_iterations": most}
    with M._lock if isinstance(M, Preconditioner) else contextlib.nullcontext():
        solver = _prepared(M, options, rtol, atol, a)
        if isinstance(guess, str):
            guess = solver.apply(right.values)
        x, report = solver.solve(right.values, guess)
    info = 0
    if not report.converged:
        done = report.iterations if method != "gmres" else -(-report.iterations // restart)
        info = -10 if report.status == "breakdown" else max(done, 1)
    kind = _kind(a, A, right)
    return right.give_back(x.astype(kind, copy=False)), info


def _why_scipy(a: Optional[Csr], M: Any, callback: Optional[Callable], A: Any) -> str:
    if a is None:
        return f"A is a {type(A).__name__}, whose entries krilu does not see"
    if callback is not None:
        return "a callback wants what krilu's own loop does not hand out as it goes"
    if M is None or isinstance(M, str):
        return ""
    if isinstance(M, Preconditioner):
        if M.shape != (a.rows, a.rows):
            raise ValueError(f"M has the shape {M.shape}, and A {a.rows} rows")
        return "" if M._is_of(a) else "M was made from another matrix than A"
    return f"M is a {type(M).__name__}, which krilu did not make"


def _prepared(M: Any, options: dict[str, Any], rtol: float, atol: float, a: Csr) -> Solver:
    """A solver that has been set up for a. The one that M served last is taken again where nothing has changed; another
    thread may have updated M since it was found to be of a."""
    if not isinstance(M, Preconditioner):
        solver = Solver(**options, rtol=rtol, atol=atol)
        solver._take("setup", a)
        return solver
    last, key = M._last, (a.digest, options)
    if last is None or last[0] != key:
        solver = Solver(**options, rtol=rtol, atol=atol)
        solver._take("setup", a)
        M._last = last = (key, solver)
    last[1].set_tolerances(rtol, atol)
    return last[1]


def _kind(a: Optional[Csr], A: Any, right: Vector) -> np.dtype:
    """SciPy's rule: single precision where all is."""
    single = np.dtype(getattr(A, "dtype", np.float64)) == np.float32 and right.dtype == np.float32
    return np.dtype(np.float32 if single else np.float64)


def _by_scipy(method: str, A: Any, given: Any, right: Vector, guess: Union[None, str, np.ndarray], rtol: float,
              atol: float, maxiter: Optional[int], M: Any, callback: Optional[Callable], options: dict[str, Any],
              restart: Optional[int], callback_type: Optional[str]) -> tuple[np.ndarray, int]:
    unused = [name for name in options if name not in _OPTIONS or not isinstance(M, str)]
    if unused:
        raise TypeError(f"krilu.{method}: SciPy's method has no option {unused[0]!r}")
    if isinstance(M, str):
        if not hasattr(A, "indptr"):
            raise ValueError(f"M={M!r} is formed from a matrix's entries, and A is a {type(given).__name__} that shows "
                             f"none: give M=krilu.preconditioner(P, {M!r}) with a matrix P that is like A")
        M = None if M == "none" else preconditioner(A, "dilu" if M == "auto" else M, **options)
    kind = _kind(None, given, right)
    if hasattr(A, "indptr"):
        A = A.astype(kind, copy=False)
    extra = {"restart": restart, "callback_type": callback_type} if method == "gmres" else {}
    x, info = getattr(scipy_linalg, method)(A, right.values.astype(kind, copy=False), x0=guess, rtol=rtol, atol=atol,
                                            maxiter=maxiter, M=M, callback=callback, **extra)
    return right.give_back(x), int(info)
