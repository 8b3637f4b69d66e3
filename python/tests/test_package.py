# SPDX-License-Identifier: Apache-2.0
"""What a user finds beside the code: types, docstrings, examples that run, a manual whose examples run."""
import ast
import doctest
import importlib
import inspect
import pathlib
import re

import pytest

import krilu

HERE = pathlib.Path(krilu.__file__).parent
ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = [name for name in krilu.__all__ if name != "__version__"]


def test_types_are_there():
    assert (HERE / "py.typed").exists()
    stub = (HERE / "_krilu.pyi").read_text()
    ast.parse(stub)
    for name in ("class Solver", "class Error", "def solve", "def apply", "def factor"):
        assert name in stub


def test_the_version_is_the_librarys():
    cmake = ROOT / "CMakeLists.txt"
    assert re.fullmatch(r"\d+\.\d+\.\d+", krilu.__version__)
    if cmake.exists():
        assert f"project(krilu VERSION {krilu.__version__}" in cmake.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_everything_public_is_documented_and_annotated(name):
    thing = getattr(krilu, name)
    assert inspect.getdoc(thing)
    members = [thing] if inspect.isfunction(thing) else [
        m for name, m in vars(thing).items() if inspect.isfunction(m) and not name.startswith("_")]
    for member in members:
        assert inspect.getdoc(member), member
        for parameter in inspect.signature(member).parameters.values():
            assert parameter.name == "self" or parameter.annotation is not inspect.Parameter.empty, member


@pytest.mark.parametrize("module", ["_solver", "_preconditioners", "_drop_in", "_report", "_arrays", "_options"])
def test_examples_in_docstrings_run(module):
    result = doctest.testmod(importlib.import_module(f"krilu.{module}"))
    assert result.failed == 0


def test_the_manuals_examples_run(tmp_path, monkeypatch):
    manual = ROOT / "docs" / "python.md"
    if not manual.exists():
        pytest.skip(f"{manual} is not there")
    matplotlib = pytest.importorskip("matplotlib", reason="Matplotlib is not installed: the manual draws")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names = {}
    examples = re.findall(r"```python\n(.*?)```", manual.read_text(), re.S)
    assert len(examples) >= 4
    for example in examples:
        exec(compile(example, str(manual), "exec"), names)
