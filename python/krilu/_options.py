# SPDX-License-Identifier: Apache-2.0
"""The options of a solve: their defaults, and the types that they must have. The library checks their values. And what
they and a solver's steps are called, where its sentences have other names."""
from __future__ import annotations

import difflib
import numbers
import operator
import re
from typing import Any

from ._krilu import Error

DEFAULTS: dict[str, Any] = {
    "solver": "auto",
    "precond": "auto",
    "triangular": "auto",
    "ordering": "auto",
    "scaling": "none",
    "device": "auto",
    "threads": 0,
    "restart": 30,
    "rtol": 1e-8,
    "atol": 0.0,
    "norm": "true2",
    "max_iterations": 10000,
    "shift": 0.0,
    "precision": "auto",
    "basis": "auto",
    "inner_iterations": 0,
    "outer_iterations": 0,
    "inner_tolerance": 0.0,
}

# Of the command, where its name is not the option's with hyphens.
_OF_THE_COMMAND = {"max-iters": "max_iterations", "inner-iters": "inner_iterations", "outer-iters": "outer_iterations",
                   "inner-rtol": "inner_tolerance"}
# In the library's sentences, of whose C++ the step is, or both steps are.
_OF_CPP = (("factor comes after", "update comes after"), ("analyse and factor", "analyse and update"))
# As SciPy and others call them.
_OF_OTHERS = {"preconditioner": "precond", "M": "precond", "method": "solver", "tol": "rtol", "tolerance": "rtol",
              "maxiter": "max_iterations", "n_threads": "threads"}


def checked(given: dict[str, Any], caller: str) -> dict[str, Any]:
    """All options, those given in place of the defaults.

    Raises TypeError for a name that is none, and for a value of another type; krilu.Error for a number out of range.
    """
    options = dict(DEFAULTS)
    for name, value in given.items():
        if name not in DEFAULTS:
            near = [_OF_OTHERS[name]] if name in _OF_OTHERS else difflib.get_close_matches(name, DEFAULTS, 1)
            raise TypeError(f"{caller} has no option {name!r}: " +
                            (f"did you mean {near[0]!r}?" if near else f"there are {', '.join(DEFAULTS)}"))
        options[name] = _of_type(name, value, DEFAULTS[name])
    return options


def _of_type(name: str, value: Any, default: Any) -> Any:
    if isinstance(default, str):
        if not isinstance(value, str):
            raise TypeError(f"{name} is a name (a str), not {value!r}")
        return value
    if isinstance(default, int):
        try:
            number = operator.index(value)
        except TypeError:
            raise TypeError(f"{name} is a whole number, not {value!r}") from None
        if abs(number) > 2**31 - 1:
            raise Error(f"{name} is {number}, and may be 2^31 - 1 at most")
        return number
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{name} is a number, not {value!r}")
    return float(value)


def _of_the_command(name: str) -> str:
    return _OF_THE_COMMAND.get(name, name.replace("-", "_"))


_NAMED = re.compile(r"--([a-z]+(?:-[a-z]+)*)|\b(" + "|".join(_OF_THE_COMMAND) + r")\b")


def in_python_words(text: str) -> str:
    """A sentence of the library's, which names the command's options and the steps of C++, in this package's names."""

    def named(found: re.Match[str]) -> str:
        name = _of_the_command(found[1] or found[2])
        return name if name in DEFAULTS else found[0]

    text = _NAMED.sub(named, text)
    for theirs, ours in _OF_CPP:
        text = text.replace(theirs, ours)
    return text


def of_arguments(arguments: str) -> dict[str, Any]:
    """The options of "--solver gmres --restart 50", as the command takes them."""
    words = arguments.split()
    options = {}
    for flag, text in zip(words[::2], words[1::2]):
        name = _of_the_command(flag.lstrip("-"))
        default = DEFAULTS.get(name, "")
        options[name] = text if isinstance(default, str) else type(default)(text)
    return options
