# SPDX-License-Identifier: Apache-2.0
"""Each mistake is an exception of Python's own kinds with a sentence; none ends the process."""
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import krilu
from conftest import poisson, right_side

A = poisson(5)
B = right_side(25)


def test_errors_are_value_errors():
    assert issubclass(krilu.Error, ValueError) and issubclass(krilu.ZeroPivot, krilu.Error)
    assert issubclass(krilu.StructurallySingular, krilu.Error) and krilu.Error.__module__ == "krilu"


CALLS = [krilu.solve, krilu.cg, krilu.bicgstab, krilu.gmres]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("a, b, words", [
    (A[:20], B, "square"),
    (A[:, :20], B, "square"),
    (A, B[:24], r"\(24,\)"),
    (A, np.ones((25, 2)), r"\(25, 2\)"),
    (A, np.ones((1, 25)), r"\(1, 25\)"),
    (A, 3.0, r"\(\)"),
    (np.ones(25), B, "square"),
    (np.ones((2, 2, 2)), B, "square"),
    (sp.csr_array((0, 0)), B, "0 rows"),
])
def test_wrong_shapes(call, a, b, words):
    with pytest.raises(krilu.Error, match=words):
        call(a, b)


@pytest.mark.parametrize("call", CALLS)
def test_a_guess_of_another_shape(call):
    with pytest.raises(ValueError, match=r"x0 has the shape \(24,\)"):
        call(A, B, np.ones(24))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("a, b, what", [(A.astype(complex), B, "complex"), (A, B.astype(complex), "complex"),
                                        (A.toarray() * 1j, B, "complex"), (A.tocoo() * 1j, B, "complex"),
                                        (A, np.array(["1"] * 25), "not numbers"),
                                        (A, np.array([None] * 25), "not numbers"),
                                        (A, sp.csr_array(B[:, None]), "sparse")])
def test_complex_values_and_no_numbers(call, a, b, what):
    with pytest.raises(TypeError, match=what):
        call(a, b)


def test_a_complex_guess():
    with pytest.raises(TypeError, match="x0 is complex"):
        krilu.solve(A, B, np.ones(25) * 1j)
    with pytest.raises(TypeError, match="x0 is complex"):
        krilu.cg(A, B, np.ones(25) * 1j)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("call", CALLS)
def test_values_that_are_not_finite(call, bad):
    b = B.copy()
    b[7] = bad
    with pytest.raises(krilu.Error, match="row 8"):
        call(A, b)
    a = A.copy()
    a.data[3] = bad
    with pytest.raises(krilu.Error):
        call(a, B)


def test_masked_entries():
    b = np.ma.masked_array(B, mask=np.arange(25) == 3)
    with pytest.raises(krilu.Error, match="masked"):
        krilu.solve(A, b)
    assert krilu.solve(A, np.ma.masked_array(B))[1].converged


@pytest.mark.parametrize("call", CALLS)
def test_masked_entries_of_a_matrix(call):
    dense = np.ma.masked_array(A.toarray(), mask=np.eye(25, k=3))
    stored = A.copy()
    stored.data = np.ma.masked_array(A.data, mask=np.arange(A.nnz) == 3)
    for a in (dense, stored):
        with pytest.raises(krilu.Error, match="the matrix has masked entries"):
            call(a, B)
    assert krilu.solve(np.ma.masked_array(A.toarray()), B)[1].converged


def broken(**changes):
    a = A.copy()
    for name, value in changes.items():
        setattr(a, name, value)
    return a


def changed(array, at, value):
    copy = array.copy()
    copy[at] = value
    return copy


@pytest.mark.parametrize("a", [
    broken(indices=changed(A.indices, 4, 25)), broken(indices=changed(A.indices, 4, -1)),
    broken(indices=changed(A.indices.astype(np.int64), 4, 2**40)), broken(indices=changed(A.indices, 4, 2**31 - 1)),
    broken(indptr=changed(A.indptr, 3, 10**6)), broken(indptr=changed(A.indptr, 3, -5)),
    broken(indptr=changed(A.indptr, -1, 10**6)), broken(indptr=changed(A.indptr, 0, 1)), broken(indptr=A.indptr[:-1]),
    broken(data=A.data[:10]), broken(indices=A.indices[:10]),
])
def test_arrays_that_are_no_csr_matrix(a):
    for call in CALLS:
        with pytest.raises(ValueError):
            call(a, B)


def test_too_many_rows():
    a = sp.coo_array((np.ones(1), ([0], [0])), shape=(2**31, 2**31))
    with pytest.raises(krilu.Error, match="2\\^31"):
        krilu.solve(a, B)


def test_a_linear_operator_has_no_entries():
    with pytest.raises(TypeError, match="no entries"):
        krilu.solve(spla.LinearOperator((25, 25), matvec=lambda v: v), B)
    with pytest.raises(TypeError, match="no entries"):
        krilu.solve("A", B)
    with pytest.raises(TypeError, match="no entries"):
        krilu.dilu(None)


@pytest.mark.parametrize("options, words", [
    ({"solver": "bicgsta"}, "bicgstab"), ({"precond": "dlu"}, "dilu"), ({"device": "gpu"}, "device"),
    ({"norm": "max"}, "norm"), ({"ordering": "rmc"}, "rcm"), ({"rtol": -1.0}, "rtol"), ({"rtol": float("nan")}, "rtol"),
    ({"restart": 0}, "restart"), ({"max_iterations": -1}, "max"), ({"max_iterations": 2**40}, "max_iterations"),
    ({"threads": -1}, "threads"), ({"precision": "fp8"}, "fp"), ({"precond": "ilut:1,2,3"}, "ilut"),
    ({"precond": "iluk:-1"}, "iluk"),
])
def test_options_of_no_such_value(options, words):
    with pytest.raises(krilu.Error, match=words):
        krilu.solve(A, B, **options)


@pytest.mark.parametrize("options, words", [
    ({"preconditioner": "dilu"}, "did you mean 'precond'"), ({"tol": 1e-3}, "no option 'tol': did you mean 'rtol'"),
    ({"orderin": "rcm"}, "did you mean 'ordering'"), ({"solver": 3}, "name"), ({"rtol": "1e-3"}, "number"),
    ({"restart": 2.5}, "whole number"), ({"rtol": 1j}, "number"), ({"precond": None}, "name"),
])
def test_options_of_another_type_or_name(options, words):
    with pytest.raises(TypeError, match=words):
        krilu.solve(A, B, **options)


def test_numpys_numbers_are_numbers():
    _, report = krilu.solve(A, B, rtol=np.float32(1e-3), restart=np.int64(10), max_iterations=np.uint8(50))
    assert report.converged and report.asked["restart"] == 10


def test_a_device_that_is_not_there():
    with pytest.raises(krilu.Error, match="cuda|GPU"):
        krilu.solve(A, B, device="cuda:99")
    with pytest.raises(krilu.Error, match="cuda|GPU"):
        krilu.dilu(A, device="cuda:99")


def test_a_zero_pivot_names_its_row():
    a = poisson(5).tolil()
    a[6, 6] = 0
    a = a.tocsr()
    with pytest.raises(krilu.ZeroPivot, match="row 7"):
        krilu.solve(a, B, solver="bicgstab", precond="jacobi")
    with pytest.raises(krilu.ZeroPivot, match="row 7"):
        krilu.jacobi(a)


def test_dic_of_an_unsymmetric_matrix():
    a = A.copy()
    a.data[1] += 0.5
    with pytest.raises(krilu.Error, match="symmetric"):
        krilu.dic(a)


def test_steps_out_of_order():
    solver = krilu.Solver(solver="cg", precond="dic")
    with pytest.raises(krilu.Error, match="analyse"):
        solver.update(A)
    with pytest.raises(krilu.Error, match=r"solve comes after analyse and update: call analyse\(A\)"):
        solver.solve(B)
    with pytest.raises(krilu.Error, match=r"apply comes after analyse and update: call analyse\(A\)"):
        solver.apply(B)
    solver.analyse(A)
    with pytest.raises(krilu.Error, match="solve comes after analyse and update"):
        solver.solve(B)
    with pytest.raises(krilu.Error, match="apply comes after analyse and update"):
        solver.apply(B)
    with pytest.raises(krilu.Error, match="pattern"):
        solver.update(poisson(4))
    solver.update(A)
    assert solver.solve(B)[1].converged
    with pytest.raises(krilu.Error):
        solver.solve(np.ones(24))
    with pytest.raises(krilu.Error):
        solver.apply(np.ones(26))
    assert solver.solve(B)[1].converged


def with_zeros(*rows):
    a = poisson(5).tolil()
    for row in rows:
        a[row, row] = 0
    return a.tocsr()


@pytest.mark.parametrize("call, words", [
    (lambda: krilu.Solver(solver="cg").update(A), "update comes after analyse"),
    (lambda: krilu.jacobi(with_zeros(6)), "use precond none"),
    (lambda: krilu.solve(with_zeros(0), B, solver="gmres", precond="ilu0"), "give shift .* precond jacobi or none"),
    (lambda: krilu.solve(A, B, solver="gmres", norm="openfoam"), "with norm openfoam"),
    (lambda: krilu.solve(A, B, device="cuda:99"), "(?i)cuda"),
    (lambda: krilu.solve(A, B, max_iterations=-1), "max_iterations is"),
    (lambda: krilu.solve(A, B, inner_iterations=10**6), "inner_iterations are"),
])
def test_sentences_name_what_python_has(call, words):
    with pytest.raises(krilu.Error, match=words) as caught:
        call()
    assert "--" not in str(caught.value) and "-iters" not in str(caught.value)


def test_notes_name_what_python_has():
    _, report = krilu.solve(A, B, solver="cg", precond="dic", inner_iterations=3, precision="fp64")
    assert any(n.startswith("inner_iterations, outer_iterations and inner_tolerance: not used") for n in report.notes)
    solver = krilu.Solver()
    solver.setup(with_zeros(*range(0, 25, 2)))
    assert any("; shift would allow dilu" in line for line in solver.explanation), solver.explanation


def test_a_singular_matrix_is_a_status():
    a = sp.csr_array(np.array([[1.0, 1.0], [1.0, 1.0]]))
    x, report = krilu.solve(a, np.array([1.0, 2.0]))
    assert not report.converged and np.isfinite(x).all()


def test_preconditioners_of_no_such_options():
    with pytest.raises(TypeError, match="no option 'rtol'"):
        krilu.dilu(A, rtol=1e-3)
    with pytest.raises(TypeError, match="whole number"):
        krilu.iluk(A, 1.5)
    with pytest.raises(TypeError):
        krilu.preconditioner(A, "auto")
    with pytest.raises(krilu.Error):
        krilu.block_ilu(A, local="nothing")
