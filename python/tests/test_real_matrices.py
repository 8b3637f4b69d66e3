# SPDX-License-Identifier: Apache-2.0
"""Real matrices: krilu's answers beside SciPy's direct solver and pyamg's methods."""
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import krilu
from conftest import real_matrix


def residual(a, x, b):
    return np.linalg.norm(b - a @ x) / np.linalg.norm(b)


@pytest.mark.parametrize("name", ["orsreg_1", "pde900", "cavity05", "add32", "epb0", "Dubcova1", "gr_30_30", "memplus",
                                  "rdb2048", "GT01R"])
def test_solve_meets_its_tolerance_and_scipys_answer(name):
    a, b = real_matrix(name)
    x, report = krilu.solve(a, b)
    assert report.converged, str(report)
    assert residual(a, x, b) <= 1.0001e-8
    direct = spla.spsolve(a.tocsc(), b)
    # |x - x*| <= cond |r|: measured in the residual's own norm, both answers solve the system.
    assert residual(a, direct, b) < 1e-6
    exact_part = np.linalg.norm(a @ (x - direct)) / np.linalg.norm(b)
    assert exact_part <= 1.0001e-8 + residual(a, direct, b)


@pytest.mark.parametrize("name, method, m", [("orsreg_1", "bicgstab", "ilu0"), ("pde900", "gmres", "dilu"),
                                             ("add32", "bicgstab", "dilu"), ("Dubcova1", "cg", "ic0"),
                                             ("gr_30_30", "cg", "dic"), ("cage9", "gmres", "jacobi")])
def test_krilus_loop_and_scipys_with_krilus_preconditioner_agree(name, method, m):
    a, b = real_matrix(name)
    count = []
    extra = {"callback_type": "pr_norm", "restart": 50} if method == "gmres" else {}
    theirs, info = getattr(spla, method)(a, b, rtol=1e-10, M=krilu.preconditioner(a, m),
                                         callback=lambda _: count.append(0), **extra)
    assert info == 0
    ours, info = getattr(krilu, method)(a, b, rtol=1e-10, M=m, **({"restart": 50} if method == "gmres" else {}))
    assert info == 0 and residual(a, ours, b) <= 1.0001e-10
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5 * np.abs(theirs).max())
    _, report = krilu.solve(a, b, solver=method, precond=m, rtol=1e-10, restart=50)
    # The same recurrence, but for rounding; GMRES is preconditioned from the other side.
    assert abs(report.iterations - len(count)) <= max(3, 0.15 * len(count))


@pytest.mark.parametrize("name, method", [("orsreg_1", "bicgstab"), ("pde900", "gmres"), ("gr_30_30", "cg"),
                                          ("Dubcova1", "cg")])
def test_pyamgs_methods_give_the_same_answers(name, method):
    krylov = pytest.importorskip("pyamg.krylov", reason="pyamg is not installed: its methods are not compared")
    a, b = real_matrix(name)
    m = krilu.preconditioner(a, "dilu")
    theirs, info = getattr(krylov, method)(sp.csr_array(a), b, tol=1e-10, M=m, maxiter=500)
    assert info == 0
    ours, info = getattr(krilu, method)(a, b, rtol=1e-10, M=m)
    assert info == 0
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5 * np.abs(theirs).max())


def test_a_known_solution_is_found():
    a, b = real_matrix("GT01R")
    from conftest import folder_of_matrices
    import scipy.io

    exact = np.asarray(scipy.io.mmread(folder_of_matrices() / "GT01R_x.mtx.gz")).ravel()
    x, report = krilu.solve(a, b, rtol=1e-12)
    assert report.residual <= 1e-10
    assert np.linalg.norm(a @ (x - exact)) <= 1e-6 * np.linalg.norm(b)
