# SPDX-License-Identifier: Apache-2.0
"""krilu: preconditioned Krylov solvers for the large sparse linear systems of CFD, on CPUs and NVIDIA GPUs.

    x, report = krilu.solve(A, b)                  one call; print(report), report.plot()
    solver = krilu.Solver(...)                     analyse once, update values, solve: for time steps
    x, info = krilu.gmres(A, b, M="ilu0")          cg, bicgstab and gmres with SciPy's signatures
    M = krilu.dilu(A)                              preconditioners for the solvers of scipy.sparse.linalg
"""
from ._drop_in import ScipyWarning, bicgstab, cg, gmres
from ._krilu import Error, StructurallySingular, ZeroPivot
from ._krilu import version as __version__
from ._preconditioners import (Preconditioner, block_ilu, dic, dilu, ic0, iluk, ilu0, ilut, jacobi, preconditioner, ras)
from ._report import Report, Rung, Seconds
from ._solver import Counts, Solver, solve

Error.__doc__ = """Bad input or bad use. The text says what is at fault and what would mend it.

A ValueError, since that is what it nearly always is, and what NumPy and SciPy raise for the same mistakes. Wrong types,
complex values among them, are a TypeError. Not converging is no error: see Report.status.
"""
ZeroPivot.__doc__ = "A factorisation met a pivot that it cannot divide by."
StructurallySingular.__doc__ = "Rows that cannot each be given a column of their own: singular, whatever the values."
for _error in (Error, ZeroPivot, StructurallySingular):
    _error.__module__ = "krilu"
del _error

__all__ = [
    "Counts", "Error", "Preconditioner", "Report", "Rung", "ScipyWarning", "Seconds", "Solver", "StructurallySingular",
    "ZeroPivot", "bicgstab", "block_ilu", "cg", "dic", "dilu", "gmres", "ic0", "iluk", "ilu0", "ilut", "jacobi",
    "preconditioner", "ras", "solve", "__version__",
]
