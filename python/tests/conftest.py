# SPDX-License-Identifier: Apache-2.0
"""Systems that the tests share: generated ones, and real matrices where they are."""
import os
import pathlib

# Threads that wait give their core away: test machines are small and shared. Read when the library is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp


def pytest_configure(config):
    config.addinivalue_line("markers", "fail_slow(seconds): of SciPy's own tests")


def poisson(n):
    """-Laplace u on n by n nodes, five points."""
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    one = sp.eye_array(n)
    return (sp.kron(line, one) + sp.kron(one, line)).tocsr()


def convection(n, speed=0.7):
    """Unsymmetric: poisson with upwind convection along the rows."""
    wind = sp.diags_array([-speed, speed], offsets=[-1, 0], shape=(n * n, n * n))
    return (poisson(n) + wind).tocsr()


def right_side(n, seed=1):
    return np.random.default_rng(seed).uniform(-1, 1, n)


def folder_of_matrices():
    """KRILU_MATRICES, or ../shared/matrices beside the checkout."""
    beside = pathlib.Path(__file__).resolve().parents[3] / "shared" / "matrices"
    return pathlib.Path(os.environ.get("KRILU_MATRICES", beside))


def real_matrix(name):
    """A and b (random where there is none beside it). Skips the test where the file is not there."""
    folder = folder_of_matrices()
    path = folder / f"{name}.mtx.gz"
    if not path.exists():
        pytest.skip(f"{path} is not there; KRILU_MATRICES names the folder of the matrices")
    a = sp.csr_array(scipy.io.mmread(path))
    b_path = folder / f"{name}_b.mtx.gz"
    b = np.asarray(scipy.io.mmread(b_path)).ravel() if b_path.exists() else right_side(a.shape[0])
    return a, b
