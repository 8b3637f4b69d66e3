# SPDX-License-Identifier: Apache-2.0
"""SciPy's own tests of cg, bicgstab and gmres, run on krilu's functions of these names.

The module scipy.sparse.linalg._isolve.tests.test_iterative is loaded with krilu's functions in place of SciPy's three.
What it tests with complex systems is left out: krilu refuses those.
"""
import importlib.util
from unittest import mock

import numpy as np
import pytest
import scipy

import krilu

OURS = (krilu.cg, krilu.bicgstab, krilu.gmres)
LEFT_OUT = {"test_show", "TestQMR", "test_maxiter_worsening"}  # of other solvers; of a complex system


def load():
    isolve = pytest.importorskip("scipy.sparse.linalg._isolve")
    try:
        found = importlib.util.find_spec("scipy.sparse.linalg._isolve.tests.test_iterative")
    except ImportError:
        found = None
    if found is None:
        pytest.skip("this SciPy was installed without its tests", allow_module_level=True)
    spec = importlib.util.spec_from_file_location("scipy_test_iterative", found.origin)
    module = importlib.util.module_from_spec(spec)
    with mock.patch.multiple(isolve, cg=krilu.cg, bicgstab=krilu.bicgstab, gmres=krilu.gmres):
        try:
            spec.loader.exec_module(module)
        except KeyError:
            pytest.skip(f"the tests of SciPy {scipy.__version__} are of SciPy's own functions alone: those of 1.17 and "
                        "before can be run on others", allow_module_level=True)
    return module


theirs = load()
globals().update({name: thing for name, thing in vars(theirs).items()
                  if name.startswith(("test_", "Test")) and name not in LEFT_OUT})


class TestGMRES(theirs.TestGMRES):
    def test_abi(self):
        with pytest.raises(TypeError, match="complex"):
            krilu.gmres(np.eye(2) * 1j, np.ones(2))


pytestmark = pytest.mark.filterwarnings("ignore::krilu.ScipyWarning")


def is_complex(case):
    return np.iscomplexobj(case.A if isinstance(case.A, np.ndarray) else case.A.data)


cases = [c for c in theirs.cases if c.solver in OURS and not is_complex(c)]


@pytest.fixture(params=OURS, ids=lambda f: f.__name__)
def solver(request):
    return request.param


@pytest.fixture(params=cases, ids=[c.name for c in cases])
def case(request):
    return request.param


def test_the_cases_are_those_of_three_solvers():
    assert {c.solver for c in cases} == set(OURS) and len(cases) > 30
