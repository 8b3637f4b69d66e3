# SPDX-License-Identifier: Apache-2.0
"""krilu.cg, bicgstab and gmres beside SciPy's: same answers, same meanings, SciPy's own loop where krilu's cannot."""
import inspect
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import krilu
from conftest import convection, poisson, right_side

METHODS = ["cg", "bicgstab", "gmres"]


def system(method):
    a = poisson(15) if method == "cg" else convection(15)
    return a, right_side(225)


@pytest.mark.parametrize("method", METHODS)
def test_the_signature_is_scipys(method):
    ours = inspect.signature(getattr(krilu, method)).parameters
    theirs = inspect.signature(getattr(spla, method)).parameters
    for name, parameter in theirs.items():
        assert name in ours and ours[name].kind == parameter.kind and ours[name].default == parameter.default
    assert [p for p in ours if p not in theirs] == ["options"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("m", [None, "jacobi", "dilu", "ilu0", "auto"])
def test_krilus_own_loop_meets_scipys_tolerance(method, m):
    a, b = system(method)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x, info = getattr(krilu, method)(a, b, M=m, rtol=1e-7)
    assert info == 0 and x.shape == (225,) and x.dtype == np.float64
    assert np.linalg.norm(b - a @ x) <= 1e-7 * np.linalg.norm(b)
    x, info = getattr(krilu, method)(a, b, M=m, rtol=0, atol=1e-3)
    assert info == 0 and np.linalg.norm(b - a @ x) <= 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_iterations_are_scipys_where_nothing_is_preconditioned(method):
    a, b = system(method)
    count = []
    extra = {"callback_type": "pr_norm", "restart": 20} if method == "gmres" else {}
    _, info = getattr(spla, method)(a, b, rtol=1e-8, callback=lambda _: count.append(0), **extra)
    assert info == 0
    _, report = krilu.solve(a, b, solver=method, precond="none", rtol=1e-8, restart=20)
    assert abs(report.iterations - len(count)) <= 1


@pytest.mark.parametrize("method", METHODS)
def test_info_says_that_and_how_far_it_did_not_converge(method):
    a, b = system(method)
    for most in (1, 3):
        x, info = getattr(krilu, method)(a, b, rtol=1e-14, maxiter=most)
        assert info == most == getattr(spla, method)(a, b, rtol=1e-14, maxiter=most)[1]
    assert np.linalg.norm(b - a @ x) <= np.linalg.norm(b)
    assert getattr(krilu, method)(a, b, maxiter=0)[1] != 0


def test_gmres_counts_cycles():
    a, b = system("gmres")
    x, info = krilu.gmres(a, b, rtol=1e-12, restart=5, maxiter=2)
    _, report = krilu.solve(a, b, solver="gmres", precond="none", rtol=1e-12, restart=5, max_iterations=10)
    assert info == 2 and report.iterations == 10
    np.testing.assert_allclose(x, krilu.solve(a, b, solver="gmres", precond="none", rtol=1e-12, restart=5,
                                              max_iterations=10)[0])
    theirs, _ = spla.gmres(a, b, rtol=1e-12, restart=5, maxiter=2)
    np.testing.assert_allclose(x, theirs, rtol=1e-8, atol=1e-10)


def test_a_breakdown_is_negative():
    # rho = (r~, r) stays, (r~, A p) is zero: A turns by a quarter.
    a = sp.csr_array(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    b = np.array([1.0, 0.0])
    x, info = krilu.bicgstab(a, b)
    assert (info < 0) == (np.linalg.norm(b - a @ x) > 1e-5)
    assert np.isfinite(x).all()


@pytest.mark.parametrize("method", METHODS)
def test_single_precision_comes_back_as_such(method):
    a, b = system(method)
    x, info = getattr(krilu, method)(a.astype(np.float32), b.astype(np.float32))
    assert info == 0 and x.dtype == np.float32 == getattr(spla, method)(a.astype("f"), b.astype("f"))[0].dtype
    assert getattr(krilu, method)(a.astype(np.float32), b)[0].dtype == np.float64
    assert getattr(krilu, method)(a, b.astype(np.float32))[0].dtype == np.float64
    assert getattr(krilu, method)(a.astype(int), b.astype(np.float32))[0].dtype == np.float64


@pytest.mark.parametrize("method", METHODS)
def test_a_column_gives_a_vector_as_in_scipy(method):
    a, b = system(method)
    x, _ = getattr(krilu, method)(a, b[:, None], b[:, None])
    assert x.shape == (225,) == getattr(spla, method)(a, b[:, None], b[:, None])[0].shape


@pytest.mark.parametrize("method", METHODS)
def test_a_preconditioner_of_krilus_serves_krilus_loop_and_is_kept(method):
    a, b = system(method)
    m = krilu.dilu(a)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x, info = getattr(krilu, method)(a, b, M=m, rtol=1e-8)
        prepared = m._last[1]
        again, _ = getattr(krilu, method)(a.tocsc(), b, M=m, rtol=1e-10)
    assert info == 0 and np.array_equal(x, getattr(krilu, method)(a, b, M="dilu", rtol=1e-8, device="host")[0])
    assert m._last[1] is prepared and prepared.counts == (1, 1, 2)
    assert np.linalg.norm(b - a @ again) <= 1e-10 * np.linalg.norm(b)


def test_what_is_kept_is_of_its_matrix_though_another_thread_updates(monkeypatch):
    a, b = system("cg")
    m = krilu.dic(a)
    asked, updated = threading.Event(), threading.Event()
    is_of = krilu.Preconditioner._is_of

    def slow(self, matrix):
        answer = is_of(self, matrix)
        if threading.current_thread() is thread:
            asked.set()
            assert updated.wait(30)
        return answer

    monkeypatch.setattr(krilu.Preconditioner, "_is_of", slow)
    found = []
    thread = threading.Thread(target=lambda: found.append(krilu.cg(a, b, M=m, rtol=1e-8)))
    thread.start()
    assert asked.wait(30)  # m is of a, and in a moment it is not
    m.update(5 * a)
    updated.set()
    thread.join()
    for matrix, (x, info) in ((a, found[0]), (5 * a, krilu.cg(5 * a, b, M=m, rtol=1e-8))):
        assert info == 0 and np.linalg.norm(b - matrix @ x) <= 1.001e-8 * np.linalg.norm(b)


@pytest.mark.parametrize("before", [True, False], ids=["before its factorisation", "after it"])
def test_an_update_in_another_thread_is_waited_for(monkeypatch, before):
    a, b = system("cg")
    m = krilu.dic(a)
    begun, go_on = threading.Event(), threading.Event()
    take = m._solver._take

    def slow(step, matrix):
        if threading.current_thread() is not thread:
            return take(step, matrix)
        if not before:
            take(step, matrix)
        begun.set()
        assert go_on.wait(30)
        if before:
            take(step, matrix)

    monkeypatch.setattr(m._solver, "_take", slow)
    thread = threading.Thread(target=m.update, args=(5 * a,))
    thread.start()
    assert begun.wait(30)
    threading.Timer(0.2, go_on.set).start()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if before:
            assert krilu.cg(5 * a, b, M=m)[1] == 0  # m is of that, and of no other, once the thread has ended
        else:
            m.update(3 * a)
            thread.join()
            assert krilu.cg(3 * a, b, M=m)[1] == 0
            np.testing.assert_allclose(m @ b, krilu.dic(3 * a) @ b, rtol=1e-14)
    thread.join()


@pytest.mark.parametrize("method", METHODS)
def test_a_preconditioner_of_another_matrix_is_used_as_it_is(method):
    a, b = system(method)
    m = krilu.dilu(a)
    # In place: the preconditioner stays that of the old values.
    a.data *= 3.0 if method == "cg" else 1 + 0.1 * right_side(a.nnz)
    with pytest.warns(krilu.ScipyWarning, match="another matrix"):
        x, info = getattr(krilu, method)(a, b, M=m)
    assert info == 0 and np.array_equal(x, getattr(spla, method)(a, b, M=m)[0])
    with pytest.raises(ValueError, match="shape"):
        getattr(krilu, method)(a, b, M=krilu.dilu(poisson(4)))


@pytest.mark.parametrize("method", METHODS)
def test_linear_operators_and_foreign_preconditioners_go_to_scipy(method):
    a, b = system(method)
    operator = spla.LinearOperator(a.shape, matvec=lambda v: a @ v, dtype=float)
    with pytest.warns(krilu.ScipyWarning, match="A is a _CustomLinearOperator"):
        x, info = getattr(krilu, method)(operator, b, M=krilu.dilu(a))
    assert info == 0 and np.linalg.norm(b - a @ x) <= 1.001e-5 * np.linalg.norm(b)
    with pytest.warns(krilu.ScipyWarning, match="which krilu did not make"):
        x, info = getattr(krilu, method)(a, b, M=sp.diags_array(1 / a.diagonal()))
    assert info == 0
    with pytest.raises(ValueError, match="krilu.preconditioner"), pytest.warns(krilu.ScipyWarning):
        getattr(krilu, method)(operator, b, M="dilu")
    with pytest.raises(TypeError, match="threads"), pytest.warns(krilu.ScipyWarning):
        getattr(krilu, method)(operator, b, threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert getattr(krilu, method)(spla.aslinearoperator(a), b, M="dilu")[1] == 0  # its matrix is known


@pytest.mark.parametrize("method, extra", [("cg", {}), ("bicgstab", {}), ("gmres", {"callback_type": "pr_norm"}),
                                           ("gmres", {"callback_type": "x"})])
def test_callbacks_get_what_scipys_get(method, extra):
    a, b = system(method)
    ours, theirs = [], []
    with pytest.warns(krilu.ScipyWarning, match="callback"):
        x, info = getattr(krilu, method)(a, b, M="dilu", callback=lambda v: ours.append(np.copy(v)), **extra)
    y, _ = getattr(spla, method)(a, b, M=krilu.dilu(a), callback=lambda v: theirs.append(np.copy(v)), **extra)
    assert info == 0 and len(ours) > 0 and np.array_equal(x, y)
    assert all(np.array_equal(p, q) for p, q in zip(ours, theirs, strict=True))


def test_the_guess_mb():
    a, b = system("cg")
    x, info = krilu.cg(a, b, "Mb", M="dic")
    assert info == 0 and np.array_equal(x, krilu.cg(a, b, krilu.dic(a) @ b, M="dic")[0])
    with pytest.raises(ValueError, match="'Mb'"):
        krilu.cg(a, b, "bM")


def test_options_beyond_scipys():
    a, b = system("bicgstab")
    assert krilu.bicgstab(a, b, M="ilu0", ordering="rcm", threads=1, device="host")[1] == 0
    for wrong in ("solver", "precond", "max_iterations", "norm", "nonsense"):
        with pytest.raises(TypeError, match=wrong):
            krilu.bicgstab(a, b, **{wrong: "cg"})
    with pytest.raises(ValueError, match="callback_type"):
        krilu.gmres(a, b, callback_type="residual")
    with pytest.raises(krilu.Error, match="dilu"):
        krilu.gmres(a, b, M="dlu")


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_system(method):
    x, info = getattr(krilu, method)(sp.csr_array((0, 0)), np.empty(0))
    assert x.shape == (0,) and info == 0
