# SPDX-License-Identifier: Apache-2.0
"""The preconditioners against slow dense references, and inside SciPy's solvers."""
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import krilu
from conftest import convection, poisson, right_side


def dilu_matrix(a):
    """(E + L) E^-1 (E + U) whose diagonal is a's, by the recurrence for E."""
    n = len(a)
    e = np.zeros(n)
    for i in range(n):
        e[i] = a[i, i] - sum(a[i, j] * a[j, i] / e[j] for j in range(i))
    return (np.diag(e) + np.tril(a, -1)) @ np.diag(1 / e) @ (np.diag(e) + np.triu(a, 1))


def ilu_matrix(a, pattern):
    """L U of Gaussian elimination that keeps entries of `pattern` alone."""
    f = np.where(pattern, a, 0.0)
    for i in range(1, len(a)):
        for k in range(i):
            if pattern[i, k]:
                f[i, k] /= f[k, k]
                for j in range(k + 1, len(a)):
                    if pattern[i, j]:
                        f[i, j] -= f[i, k] * f[k, j]
    return (np.tril(f, -1) + np.eye(len(a))) @ np.triu(f)


def levels_of_fill(a, most):
    level = np.where(a != 0, 0, 10**6)
    n = len(a)
    for i in range(n):
        for k in range(i):
            if level[i, k] <= most:
                level[i, k + 1:] = np.minimum(level[i, k + 1:], level[i, k] + level[k, k + 1:] + 1)
    return level <= most


def references(a):
    d = a.toarray()
    return {"none": np.eye(len(d)), "jacobi": np.diag(np.diag(d)), "dilu": dilu_matrix(d),
            "ilu0": ilu_matrix(d, d != 0), "iluk:1": ilu_matrix(d, levels_of_fill(d, 1)),
            "iluk:2": ilu_matrix(d, levels_of_fill(d, 2)),
            "ilut:1000,0.0": d, "lu": d}


@pytest.mark.parametrize("name", ["none", "jacobi", "dilu", "ilu0", "iluk:1", "iluk:2", "ilut:1000,0.0", "lu"])
def test_preconditioners_are_what_the_textbook_says(name):
    a = convection(6)
    m = krilu.preconditioner(a, name)
    r = right_side(36)
    np.testing.assert_allclose(m @ r, np.linalg.solve(references(a)[name], r), rtol=1e-10, atol=1e-12)


def test_dic_and_ic0_are_dilu_and_ilu0_of_symmetric_matrices():
    a = poisson(6)
    r = right_side(36)
    d = a.toarray()
    np.testing.assert_allclose(krilu.dic(a) @ r, np.linalg.solve(dilu_matrix(d), r), rtol=1e-10)
    np.testing.assert_allclose(krilu.ic0(a) @ r, np.linalg.solve(ilu_matrix(d, d != 0), r), rtol=1e-10)


def test_block_ilu_solves_its_blocks():
    a = sp.block_diag([convection(4)] * 4, format="csr")  # one part each: nothing is cut
    r = right_side(64)
    m = krilu.block_ilu(a, 4)
    np.testing.assert_allclose(m @ r, krilu.ilu0(a) @ r, rtol=1e-12)
    assert m.precond == "block-ilu:4,ilu0"


@pytest.mark.parametrize("make, name", [
    (krilu.jacobi, "jacobi"), (krilu.dilu, "dilu"), (krilu.dic, "dic"), (krilu.ilu0, "ilu0"), (krilu.ic0, "ic0"),
    (lambda a: krilu.iluk(a, 2), "iluk:2"), (lambda a: krilu.ilut(a, 5, 1e-3), "ilut:5,0.001"),
    (lambda a: krilu.ilut(a, tolerance=1e-5), "ilut:10,1e-05"), (lambda a: krilu.block_ilu(a, 4), "block-ilu:4,ilu0"),
    (lambda a: krilu.ras(a, 4, 2), "ras:4,2,ilu0"), (lambda a: krilu.ras(a, local="ilut:5,0.1"), "ras:0,1,ilut:5,0.1"),
])
def test_they_serve_scipys_solvers(make, name):
    a = poisson(20)
    b = right_side(400)
    m = make(a)
    assert isinstance(m, spla.LinearOperator) and m.shape == (400, 400) and m.dtype == np.float64
    assert m.precond == name and name in repr(m) and m.bytes > 0
    np.testing.assert_allclose(m @ b, krilu.preconditioner(a, name) @ b, rtol=1e-14)
    steps = {}
    for which in (None, m):
        count = []
        x, info = spla.bicgstab(a, b, M=which, rtol=1e-8, callback=lambda _: count.append(0))
        assert info == 0 and np.linalg.norm(b - a @ x) <= 1.001e-8 * np.linalg.norm(b)
        steps[which] = len(count)
    assert steps[m] <= steps[None] * (1 if name == "jacobi" else 0.8)
    x, info = spla.gmres(a, b, M=m, rtol=1e-8)
    assert info == 0
    if name in ("jacobi", "dic", "ic0"):
        assert spla.cg(a, b, M=m, rtol=1e-8)[1] == 0
        assert spla.bicg(a, b, M=m, rtol=1e-8)[1] == 0  # wants the transposed too


def test_no_transposed_factors():
    with pytest.raises(NotImplementedError, match="transposed dilu"):
        krilu.dilu(poisson(4)).rmatvec(np.ones(16))


def test_shapes_kinds_and_blocks_of_vectors():
    m = krilu.dilu(convection(5))
    r = right_side(25)
    z = m @ r
    assert (m @ r[:, None]).shape == (25, 1)
    block = np.stack([r, 2 * r, -r], axis=1)
    np.testing.assert_allclose(m @ block, np.stack([z, 2 * z, -z], axis=1), rtol=1e-14)
    np.testing.assert_allclose(m @ (r + 2j * r), z + 2j * z, rtol=1e-14)
    np.testing.assert_allclose(m @ r.astype(np.float32), m @ r.astype(np.float32).astype(float), rtol=0)
    np.testing.assert_allclose(m @ np.repeat(r, 2)[::2], z, rtol=0)
    with pytest.raises(ValueError):
        m @ np.ones(24)


def test_update_takes_new_values():
    a = convection(5)
    m = krilu.dilu(a)
    m.update(2 * a)
    r = right_side(25)
    np.testing.assert_allclose(m @ r, (krilu.dilu(a) @ r) / 2, rtol=1e-13)
    with pytest.raises(krilu.Error, match="pattern"):
        m.update(poisson(5) + sp.eye_array(25, k=3))


def test_options_reach_the_factorisation():
    a = convection(6)
    r = right_side(36)
    assert not np.allclose(krilu.ilu0(a, ordering="multicolour") @ r, krilu.ilu0(a) @ r)
    shifted = a + sp.diags_array(0.1 * abs(a).max(axis=1).toarray().ravel())
    np.testing.assert_allclose(krilu.ilu0(a, shift=0.1) @ r, krilu.ilu0(shifted.tocsr()) @ r, rtol=1e-12)
    assert not np.allclose(krilu.ilu0(a, shift=0.1) @ r, krilu.ilu0(a) @ r)
    np.testing.assert_allclose(krilu.ilu0(a, device="emulated") @ r, krilu.ilu0(a) @ r, rtol=1e-12)


def test_an_empty_matrix_has_a_preconditioner():
    m = krilu.dilu(sp.csr_array((0, 0)))
    assert m.shape == (0, 0) and (m @ np.empty(0)).shape == (0,)
