# SPDX-License-Identifier: Apache-2.0
"""krilu.solve, krilu.Solver and the report."""
import dataclasses
import re
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import krilu
from conftest import convection, poisson, right_side


def residual(a, x, b):
    return np.linalg.norm(b - a @ x) / np.linalg.norm(b)


@pytest.mark.parametrize("solver", ["auto", "bicgstab", "gmres", "fgmres", "gmres-ir"])
@pytest.mark.parametrize("precond", ["auto", "dilu", "ilu0", "iluk:1", "ilut", "ras:4", "block-ilu:4", "jacobi"])
def test_every_method_meets_its_tolerance(solver, precond):
    a = convection(20)
    b = right_side(400)
    x, report = krilu.solve(a, b, solver=solver, precond=precond, rtol=1e-9)
    assert report.converged and report.status == "converged"
    assert residual(a, x, b) <= 1e-9 * 1.0001
    assert report.residual == pytest.approx(residual(a, x, b), rel=1e-3)
    np.testing.assert_allclose(x, spla.spsolve(a.tocsc(), b), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix, sp.coo_array, sp.bsr_array,
                                  sp.dok_array, sp.lil_array, lambda a: a.toarray(), spla.aslinearoperator])
def test_every_format_gives_the_same_answer_and_notes_tell(make):
    a = convection(8)
    b = right_side(64)
    expected, _ = krilu.solve(a, b)
    given = make(a)
    x, report = krilu.solve(given, b)
    assert np.array_equal(x, expected)
    converted = [n for n in report.notes if "converted to CSR" in n]
    is_csr = getattr(given, "format", "csr") == "csr" and not isinstance(given, np.ndarray)
    assert bool(converted) != is_csr


def test_an_unsymmetric_csc_matrix_is_not_taken_for_its_transpose():
    a = sp.csr_array(np.array([[4.0, 1.0, 0.0], [0.0, 3.0, 2.0], [0.0, 0.0, 5.0]]))
    x, _ = krilu.solve(a.tocsc(), a @ np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(x, [1, 2, 3])


def test_csr_of_the_right_types_is_taken_without_a_copy_or_note():
    from krilu._arrays import matrix

    a = convection(8)
    taken = matrix(a)
    assert taken.notes == []
    for ours, theirs in ((taken.values, a.data), (taken.columns, a.indices), (taken.offsets, a.indptr)):
        assert np.shares_memory(ours, theirs)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32, np.uint8, np.float16, np.longdouble, ">f8"])
def test_values_of_other_types_are_converted_with_a_note(dtype):
    a = poisson(6)
    b = np.arange(36)
    expected, _ = krilu.solve(a, b.astype(float))
    data = np.abs(a.data) if np.dtype(dtype).kind == "u" else a.data
    if np.dtype(dtype).kind == "u":
        expected, _ = krilu.solve(abs(a), b.astype(float))
    given = sp.csr_array((data, a.indices, a.indptr), shape=a.shape)
    given.data = data.astype(dtype)
    x, report = krilu.solve(given, b.astype(dtype))
    assert np.array_equal(x, expected)
    assert x.dtype == np.float64
    assert any("the matrix's values were converted" in n for n in report.notes)
    assert any(n.startswith("b was converted") for n in report.notes)


def test_indices_of_64_bits_are_converted_where_they_fit():
    a = poisson(6)
    given = a.copy()
    given.indices = given.indices.astype(np.int64)
    given.indptr = given.indptr.astype(np.int64)
    b = right_side(36)
    x, report = krilu.solve(given, b)
    assert np.array_equal(x, krilu.solve(a, b)[0])
    assert any("converted from int64 to int32" in n for n in report.notes)
    assert given.indices.dtype == np.int64


def test_unsorted_columns_and_duplicates_are_mended_in_a_copy():
    a = poisson(6)
    rows = np.repeat(np.arange(36), np.diff(a.indptr))
    order = np.lexsort((-a.indices, rows))  # columns descending
    indices, data = a.indices[order], a.data[order] / 2
    doubled = sp.csr_array((np.repeat(data, 2), np.repeat(indices, 2), 2 * a.indptr), shape=a.shape)
    before = doubled.data.copy(), doubled.indices.copy()
    b = right_side(36)
    x, report = krilu.solve(doubled, b)
    np.testing.assert_allclose(a @ x, b, atol=1e-6)
    assert any(f"{a.nnz:,} duplicate entries" in n for n in report.notes)
    assert np.array_equal(doubled.data, before[0]) and np.array_equal(doubled.indices, before[1])


def with_duplicates(make, data):
    """All of data in the first place of the diagonal, and 1 in the second."""
    columns = np.array([0] * len(data) + [1])
    data, offsets = np.append(data, np.ones(1, data.dtype)), np.array([0, len(data), len(data) + 1])
    if make is sp.coo_array:
        return make((data, (columns, columns)), shape=(2, 2))
    return make((data[:, None, None] if make is sp.bsr_array else data, columns, offsets), shape=(2, 2))


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.coo_array, sp.bsr_array])
@pytest.mark.parametrize("dtype, data", [(np.int8, [100, 100]), (np.uint8, [200, 100]), (bool, [True, True]),
                                         (np.float32, [2**24, 1, 1]), (np.float64, [0.5, 0.25])])
def test_duplicates_are_added_in_doubles(make, dtype, data):
    from krilu._arrays import matrix

    given = with_duplicates(make, np.array(data, dtype))
    before = given.data.copy()
    taken = matrix(given)
    np.testing.assert_array_equal(taken.scipy().toarray(), np.diag([np.sum(data, dtype=np.float64), 1.0]))
    assert given.data.dtype == dtype and np.array_equal(given.data, before)
    said = f"the matrix's values were converted from {np.dtype(dtype)} to float64"
    assert (said in taken.notes) == (dtype != np.float64)


def test_a_matrix_that_changed_after_scipy_looked_at_it_is_looked_at_anew():
    a = sp.csr_array(np.array([[4.0, 1.0], [1.0, 3.0]]))
    assert a.has_canonical_format  # SciPy remembers that
    a.indices[:] = [1, 0, 0, 1]
    x, report = krilu.solve(a, np.array([1.0, 2.0]))
    np.testing.assert_allclose(a.toarray() @ x, [1, 2], atol=1e-7)
    assert any("sort its columns" in n for n in report.notes)


def test_read_only_arrays_are_taken_as_they_are():
    a = poisson(6)
    b = right_side(36)
    x0 = np.ones(36)
    for array in (a.data, a.indices, a.indptr, b, x0):
        array.flags.writeable = False
    x, report = krilu.solve(a, b, x0)
    assert report.converged and not any("copied" in n or "converted" in n for n in report.notes)
    assert x.flags.writeable and (x0 == 1).all()


def test_strided_vectors_are_copied_with_a_note():
    a = poisson(6)
    b = np.stack([right_side(36), np.full(36, np.nan)], axis=1)[:, 0]
    assert not b.flags.c_contiguous
    x, report = krilu.solve(a, b)
    assert np.array_equal(x, krilu.solve(a, b.copy())[0])
    assert any("b was copied" in n for n in report.notes)
    assert np.array_equal(krilu.solve(a, b[::-1])[0], krilu.solve(a, b[::-1].copy())[0])


def test_a_column_gives_a_column():
    a = poisson(6)
    b = right_side(36)
    x, _ = krilu.solve(a, b)
    column, _ = krilu.solve(a, b[:, None])
    assert column.shape == (36, 1) and np.array_equal(column[:, 0], x)
    assert np.array_equal(krilu.solve(a, list(b))[0], x)


def test_the_guess_is_used_and_kept():
    a = poisson(12)
    b = right_side(144)
    x, report = krilu.solve(a, b, rtol=1e-10)
    again, second = krilu.solve(a, b, x, rtol=1e-8)
    assert second.iterations == 0 and np.array_equal(again, x) and again is not x
    guess = np.zeros(144)
    krilu.solve(a, b, guess)
    assert (guess == 0).all()


def test_an_empty_matrix_is_solved():
    x, report = krilu.solve(sp.csr_array((0, 0)), np.empty(0))
    assert x.shape == (0,) and report.converged and report.iterations == 0
    assert "0 rows" in str(report) and report._repr_html_()


def test_zero_right_sides_give_zero():
    x, report = krilu.solve(poisson(5), np.zeros(25), np.ones(25))
    assert (x == 0).all() and report.converged


def test_a_solver_keeps_its_analysis():
    a = convection(15)
    b = right_side(225)
    solver = krilu.Solver(solver="bicgstab", precond="dilu", rtol=1e-10)
    solver.analyse(a)
    x = None
    for step in range(4):
        values = sp.csr_array((a.data * (1 + step), a.indices, a.indptr), shape=a.shape)
        solver.update(values)
        x, report = solver.solve(b, x)
        assert residual(values, x, b) <= 1e-10 * 1.0001
    assert solver.counts == (1, 4, 4)
    assert solver.counts.analyses == 1
    assert solver.shape == (225, 225) and solver.bytes > 0
    assert any("dilu" in line or "levels" in line for line in solver.explanation)
    assert "bicgstab" in repr(solver) and "rtol=1e-10" in repr(solver)


def test_tolerances_can_change_between_solves():
    a = poisson(20)
    solver = krilu.Solver(solver="cg", precond="dic", rtol=1e-3)
    solver.setup(a)
    few = solver.solve(right_side(400))[1]
    solver.set_tolerances(1e-12)
    many = solver.solve(right_side(400))[1]
    assert few.iterations < many.iterations and many.asked["rtol"] == 1e-12 and many.residual <= 1e-12


def test_apply_is_the_preconditioner():
    a = convection(7)
    solver = krilu.Solver(solver="bicgstab", precond="jacobi")
    solver.setup(a)
    r = right_side(49)
    np.testing.assert_allclose(solver.apply(r), r / a.diagonal(), rtol=1e-14)
    assert solver.apply(r[:, None]).shape == (49, 1)


def test_results_are_the_same_bits_for_any_number_of_threads():
    a = convection(40)
    b = right_side(1600)
    one = krilu.solve(a, b, solver="bicgstab", precond="dilu", threads=1)[0]
    assert np.array_equal(one, krilu.solve(a, b, solver="bicgstab", precond="dilu", threads=2)[0])


def test_the_report_says_what_happened():
    a = poisson(20)
    _, report = krilu.solve(a, right_side(400))
    assert (report.solver, report.precond, report.device) == ("cg", "dic", "host")
    assert isinstance(report.history, np.ndarray) and report.history.shape == (report.iterations + 1,)
    assert report.history[-1] <= 1e-8 and report.rows == 400 and report.nnz == a.nnz
    assert report.asked["rtol"] == 1e-8 and report.asked["solver"] == "auto"
    assert report.seconds.solve > 0 and report.bytes > 0
    text = str(report)
    assert repr(report) == text
    for part in ("krilu " + krilu.__version__, "400 rows", "csr_array", "cg with dic", "residual against iterations",
                 f"converged after {report.iterations} iterations", "true residual", "RMSE", "analyse", "an iteration",
                 "memory"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_breakdown_says_why_and_what_to_try():
    # The right-hand side becomes zero, and nothing is rounded on the way.
    a, b = sp.csr_array(np.ones((2, 2))), np.array([1.0, -1.0])
    _, report = krilu.solve(a, b, solver="gmres", precond="none", device="host")
    words = " ".join(str(report).split())
    assert report.status == "breakdown"
    assert "the basis grows no further, since the preconditioner's solves are unstable or the matrix is close" in words
    assert 'try precond="ilut" with scaling="both"' in words
    stagnated = dataclasses.replace(report, status="stagnated", rungs=[], relative_residual=0.5)
    assert ("the true residual does not follow the recurrence's, since the preconditioner's solves are unstable"
            in " ".join(str(stagnated).split()))
    # What is refused beside low precision is not advised there.
    lower = dataclasses.replace(report, asked={**report.asked, "precision": "fp32"})
    assert "try another precond, or" in " ".join(str(lower).split())


def test_not_converging_is_a_status():
    x, report = krilu.solve(poisson(30), right_side(900), solver="cg", precond="none", max_iterations=3)
    assert not report.converged and report.status == "max_iterations" and report.iterations == 3
    assert "max_iterations=3" in str(report)


def test_rungs_of_the_ladder_are_reported_with_the_call_that_goes_straight_to_them():
    # A saddle point: zeros on the diagonal.
    n = 300
    k = sp.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    c = sp.csr_array((np.tile([1.0, -2.0], n // 3), (np.repeat(np.arange(n // 3), 2),
                      (3 * np.arange(n // 3)[:, None] + [0, 1]).ravel())), shape=(n // 3, n))
    a = sp.block_array([[k, c.T], [c, None]], format="csr")
    b = right_side(a.shape[0])
    _, report = krilu.solve(a, b)
    assert report.converged and report.rungs
    rung = report.rungs[-1]
    assert rung.status == "converged" and rung.why_left == ""
    _, direct = krilu.solve(a, b, **rung.options)
    assert direct.converged and (direct.solver, direct.precond) == (report.solver, report.precond)
    if len(report.rungs) > 1:
        assert "rung 1" in str(report) and "krilu.solve(A, b, " in str(report)


def shortcut(report):
    """The call that the report's table suggests; None where there is none."""
    found = re.search(r"next time +(krilu\.solve\(.*?\)$)", str(report), re.S | re.M)
    return found and found[1]


def test_the_call_that_goes_straight_to_a_rung_asks_for_what_was_asked():
    a = convection(8)
    b = right_side(64)
    asked = {"rtol": 1e-10, "atol": 1e-12, "max_iterations": 500, "device": "host", "threads": 1, "restart": 70}
    _, report = krilu.solve(a, b, **asked)
    first = krilu.Rung("bicgstab with dilu", "--solver bicgstab --precond dilu", "stagnated", 9, 0.1, 0.0, "too slow")
    last = krilu.Rung("gmres(30) with ilut, scaling both", "--solver gmres --precond ilut --scaling both", "converged",
                      9, 1e-11, 0.0, "")
    climbed = dataclasses.replace(report, rungs=[first, last])
    _, direct = eval(shortcut(climbed), {"krilu": krilu, "A": a, "b": b})
    # The rung's own basis is the default, and not the one that was asked of the first.
    expected = {**report.asked, "solver": "gmres", "precond": "ilut", "scaling": "both", "restart": 30}
    assert direct.asked == expected and direct.converged
    there = dataclasses.replace(last, arguments=last.arguments + " --device emulated")
    _, direct = eval(shortcut(dataclasses.replace(report, rungs=[first, there])), {"krilu": krilu, "A": a, "b": b})
    assert direct.asked == {**expected, "device": "emulated"}
    # Where b was solved without its mean, no options go straight there.
    nowhere = dataclasses.replace(report, rungs=[first, dataclasses.replace(last, arguments="")])
    assert shortcut(nowhere) is None and "rung 2" in str(nowhere) and nowhere.rungs[-1].options == {}


def test_openfoams_norm():
    _, report = krilu.solve(poisson(20), right_side(400), norm="openfoam", rtol=0.01, solver="cg")
    assert report.converged and "OpenFOAM" in str(report)


def test_mixed_precision_is_reported():
    _, report = krilu.solve(convection(20), right_side(400), solver="gmres-ir", precond="ilu0")
    assert report.converged and report.outer_iterations > 0 and "inner solve" in str(report)


def test_html_is_well_formed_and_escaped():
    from xml.etree import ElementTree

    _, report = krilu.solve(convection(10), right_side(100))
    report.notes.append("a < b & c")
    html = report._repr_html_()
    ElementTree.fromstring(html)
    assert "a &lt; b &amp; c" in html and "<svg" in html and "converged after" in html


def test_plot_draws_the_history():
    matplotlib = pytest.importorskip("matplotlib", reason="Matplotlib is not installed: no pictures")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    _, report = krilu.solve(poisson(10), right_side(100), rtol=1e-6)
    ax = report.plot()
    assert ax.get_yscale() == "log"
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), report.history[report.history > 0])
    assert ax.lines[1].get_ydata()[0] == 1e-6
    assert report.plot(ax, color="black") is ax and len(ax.lines) == 4
    plt.close(ax.figure)


def test_plot_says_where_matplotlib_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    _, report = krilu.solve(poisson(5), right_side(25))
    with pytest.raises(ImportError, match="pip install matplotlib"):
        report.plot()
