# SPDX-License-Identifier: Apache-2.0
"""What a solve says of itself: as attributes, as the command's table, as HTML in a notebook, and drawn."""
from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple, Optional

import numpy as np

from ._krilu import version
from ._options import DEFAULTS, in_python_words, of_arguments


class Seconds(NamedTuple):
    """Seconds of wall time by part."""

    convert: float
    analyse: float
    factor: float
    solve: float


@dataclass(frozen=True)
class Rung:
    """One try of the ladder that stands behind ``solver="auto", precond="auto"``."""

    what: str
    arguments: str
    status: str
    iterations: int
    relative_residual: float
    seconds: float
    why_left: str  # empty where it is the last

    @property
    def options(self) -> dict[str, Any]:
        """The options of krilu.solve that go straight to it; empty where none do."""
        return of_arguments(self.arguments)


# What a rung has of its own: its arguments name them, but where they are the defaults.
_OF_A_RUNG = ("solver", "precond", "restart", "scaling", "ordering", "shift")


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" + ("" if n == 1 else "s")


@dataclass(frozen=True, repr=False, eq=False)
class Report:
    """How a solve went. Printing it shows the table of the command ``krilu solve``.

    Attributes
    ----------
    status : str
        "converged", "max_iterations", "stagnated" (rounding allows no smaller residual, the preconditioner that
        was named is unstable, or no rung of the ladder arrived: the last note says why), "breakdown" or "diverged".
    converged : bool
        Whether the tolerance is met, by the true residual.
    iterations : int
    residual, relative_residual : float
        ||b - A x||_2 / ||b||_2, the true one (of x itself where b is zero).
    rmse : float
        ||b - A x||_2 / sqrt(n).
    initial_residual : float
        Of the initial guess, in the norm that was asked for.
    history : (iterations + 1,) ndarray
        Residual after 0, 1, 2, ... iterations, relative to ||b|| (norm "openfoam": by OpenFOAM's normFactor); the
        recurrence's, corrected at restarts.
    solver, precond, triangular, ordering, scaling, device, precision : str
        What was used.
    outer_iterations : int
        Inner solves of mixed precision.
    values_lost : int
        Entries that became zero when they were rounded.
    threads : int
    seconds : Seconds
        Wall time: convert (what Python had to do to the arrays), analyse, factor, solve.
    bytes : int
        Held by the solver.
    notes : list of str
        Every conversion, copy and fallback, with its reason.
    rungs : list of Rung
        What the ladder of "auto" tried, in turn; empty where solver or precond were named.
    rows, nnz, matrix_bytes : int
        Of the matrix, in CSR.
    matrix : str
        What it came as: "csr_array".
    asked : dict
        The options, all of them.
    """

    status: str
    iterations: int
    relative_residual: float
    rmse: float
    initial_residual: float
    history: np.ndarray
    solver: str
    precond: str
    triangular: str
    ordering: str
    scaling: str
    device: str
    precision: str
    outer_iterations: int
    values_lost: int
    threads: int
    bytes: int
    seconds: Seconds
    notes: list[str]
    rungs: list[Rung]
    rows: int = 0
    nnz: int = 0
    matrix_bytes: int = 0
    matrix: str = ""
    asked: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def _of(cls, result: dict[str, Any], facts: dict[str, Any], asked: dict[str, Any]) -> Report:
        r = dict(result)
        r["seconds"] = Seconds(facts.get("convert", 0.0), *r["seconds"])
        r["notes"] = facts.get("notes", []) + [in_python_words(note) for note in r["notes"]]
        r["rungs"] = [Rung(*rung[:-1], in_python_words(rung[-1])) for rung in r["rungs"]]
        return cls(**r, rows=facts.get("rows", 0), nnz=facts.get("nnz", 0), matrix_bytes=facts.get("matrix_bytes", 0),
                   matrix=facts.get("name", ""), asked=dict(asked))

    @property
    def converged(self) -> bool:
        return self.status == "converged"

    @property
    def residual(self) -> float:
        return self.relative_residual

    # --- the table ------------------------------------------------------------------------------------------------

    def _sentence(self) -> str:
        after = f"after {_count(self.iterations, 'iteration')}"
        in_double = self.asked.get("solver") != "gmres-ir" and self.asked.get("precision", "auto") in ("auto", "fp64")
        may_scale = in_double and not self.asked.get("device", "auto").startswith("cuda")
        near_singular = ("the preconditioner's solves are unstable or the matrix is close to singular; try " +
                         ('precond="ilut" with scaling="both"' if may_scale else "another precond") +
                         ", or name neither solver nor precond")
        if self.status == "converged":
            return f"converged {after}"
        if self.status == "max_iterations":
            return f"not converged {after}: that is the limit, max_iterations={self.asked.get('max_iterations')}"
        if self.status == "stagnated":
            if len(self.rungs) > 1:
                return f"not converged {after}: the last note says why"
            if self.relative_residual > 1e-4:  # beyond rounding, but where x is some 1e12 times as large as b
                return f"stagnated {after}: the true residual does not follow the recurrence's, since {near_singular}"
            return f"stagnated {after}: rounding allows no smaller residual here; a larger rtol is met"
        is_gmres = "gmres" in self.solver
        others = ("another precond, or name neither solver nor precond" if is_gmres else
                  'solver="gmres", or another precond')
        if self.status == "breakdown":
            return (f"broke down {after}, twice: the basis grows no further, since {near_singular}" if is_gmres else
                    f"broke down {after}, twice: try {others}")
        if self.status == "diverged":
            return f"diverged {after}: try {others}"
        return f"{self.status} {after}"

    def _system_rows(self) -> list[tuple[str, str]]:
        per_row = self.nnz / self.rows if self.rows else 0.0
        rows = [("matrix", f"{_count(self.rows, 'row')}, {_count(self.nnz, 'nonzero')} ({per_row:.1f} a row), "
                 f"{self.matrix}"),
                ("method", f"{self.solver} with {self.precond}, {self.ordering} ordering" +
                 ("" if self.scaling == "none" else f", scaling {self.scaling}"))]
        if self.outer_iterations > 0:
            rows.append(("precision", f"{self.precision}, {_count(self.outer_iterations, 'inner solve')}"))
        rows.append(("device", f"{self.device}, {_count(self.threads, 'thread')}" +
                     ("" if self.triangular == "none" else f", triangular solves {self.triangular}")))
        return rows

    def _rung_rows(self) -> list[tuple[str, str]]:
        if len(self.rungs) < 2:
            return []
        return [(f"rung {k}", f"{r.what}: {_count(r.iterations, 'iteration')}, residual {r.relative_residual:.1e}, "
                 f"{r.seconds:.3f} s" + (f"; {r.why_left}" if r.why_left else "")) for k, r in enumerate(self.rungs, 1)]

    def _residual_rows(self) -> list[tuple[str, str]]:
        rows = []
        rtol = self.asked.get("rtol", 0.0)
        openfoam = self.asked.get("norm") == "openfoam"
        if openfoam and len(self.history):
            reduced = self.history[-1] / max(self.initial_residual, 1e-300)
            rows.append(("OpenFOAM", f"{self.initial_residual:.3e} at first, {self.history[-1]:.3e} at last (reduced "
                         f"by {reduced:.1e}, asked {rtol:.1e})"))
        rows.append(("true residual", f"{self.relative_residual:.3e} of the right-hand side" +
                     ("" if openfoam else f" (asked {rtol:.1e})")))
        rows.append(("RMSE", f"{self.rmse:.3e}"))
        return rows

    def _parts(self) -> list[tuple[str, float, float, str]]:
        total = sum(self.seconds)
        share = [100 * s / total if total > 0 else 0.0 for s in self.seconds]
        remark = f"{1e3 * self.seconds.solve / self.iterations:.3f} ms an iteration" if self.iterations else ""
        return [(name, seconds, part, remark if name == "solve" else "")
                for name, seconds, part in zip(Seconds._fields, self.seconds, share)]

    def _last_rows(self) -> list[tuple[str, str]]:
        rows = [("memory", f"{1e-6 * self.bytes:.1f} MB in the solver, {1e-6 * self.matrix_bytes:.1f} MB in the "
                 "matrix")]
        rows += [("note", note) for note in self.notes]
        if len(self.rungs) > 1 and self.converged and self.rungs[-1].arguments:
            named = ", ".join(f"{name}={value!r}" for name, value in self._shortcut().items())
            rows.append(("next time", f"krilu.solve(A, b, {named})"))
        return rows

    def _shortcut(self) -> dict[str, Any]:
        """The last rung's options, and what else was asked for."""
        options = self.rungs[-1].options
        return options | {name: value for name, value in self.asked.items()
                          if name not in _OF_A_RUNG and name not in options and value != DEFAULTS[name]}

    def __str__(self) -> str:
        lines = [f"krilu {version}", ""]
        for name, value in self._system_rows():
            lines += _row(name, value)
        rungs = self._rung_rows()
        if rungs:
            lines.append("")
            for name, value in rungs:
                lines += _row(name, value)
        if len(self.history) > 1:
            chart = _text_chart(self.history, 66, 11)
            if chart:
                lines += ["", "  residual against iterations"] + chart
        lines += [""] + textwrap.wrap(self._sentence(), 78, initial_indent="  ", subsequent_indent="  ") + [""]
        for name, value in self._residual_rows():
            lines += _row(name, value)
        lines += ["", f"  {'part':<16}{'seconds':>9}  {'share':>6}"]
        for name, seconds, share, remark in self._parts():
            lines.append(f"  {name:<16}{seconds:>9.3f}  {share:>5.0f}%" + (f"  {remark}" if remark else ""))
        lines.append("")
        for name, value in self._last_rows():
            lines += _row(name, value)
        return "\n".join(lines)

    __repr__ = __str__

    # --- notebooks and pictures -------------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        def table(rows: list[tuple[str, str]]) -> str:
            left = 'style="text-align:left"'
            return "<table>" + "".join(f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(value)}</td></tr>"
                                       for name, value in rows) + "</table>"

        colour = "green" if self.converged else "firebrick"
        parts = "".join(f'<tr><td style="text-align:left">{name}</td><td>{seconds:.3f}</td><td>{share:.0f}%</td>'
                        f'<td style="text-align:left">{escape(remark)}</td></tr>'
                        for name, seconds, share, remark in self._parts())
        return (f"<div><b>krilu {escape(version)}</b>: "
                f'<b style="color:{colour}">{escape(self._sentence())}</b>' +
                table(self._system_rows() + self._rung_rows() + self._residual_rows()) + _svg_chart(self.history) +
                "<table><tr><th>part</th><th>seconds</th><th>share</th><th></th></tr>" + parts + "</table>" +
                table(self._last_rows()) + "</div>")

    def plot(self, ax: Optional[Any] = None, **kwargs: Any) -> Any:
        """Draws the residual against iterations, logarithmic, with the tolerance.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        **kwargs
            Of ``ax.semilogy``: color, label, ...

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ImportError
            Matplotlib is not installed.
        """
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError:
                raise ImportError("report.plot() draws with Matplotlib: pip install matplotlib") from None
            ax = plt.subplots()[1]
        openfoam = self.asked.get("norm") == "openfoam"
        kwargs.setdefault("label", f"{self.solver} with {self.precond}")
        positive = self.history > 0  # a logarithm of zero is nowhere
        (line,) = ax.semilogy(np.flatnonzero(positive), self.history[positive], **kwargs)
        target = self.asked.get("rtol", 0.0) * (self.initial_residual if openfoam else 1.0)
        if target > 0:
            ax.axhline(target, color=line.get_color(), linestyle="--", linewidth=0.8, label="tolerance")
        ax.set_xlabel("iterations")
        ax.set_ylabel("OpenFOAM residual" if openfoam else "||b - A x|| / ||b||")
        ax.legend()
        return ax


def _row(name: str, value: str) -> list[str]:
    return textwrap.wrap(value, 80, initial_indent=f"  {name:<16}", subsequent_indent=" " * 18, break_long_words=False,
                         break_on_hyphens=False) or [f"  {name}"]


def _decades(history: np.ndarray) -> Optional[tuple[np.ndarray, np.ndarray, float, float]]:
    """Iterations and logarithms of what can be drawn, and the decades that hold them."""
    at = np.flatnonzero(np.isfinite(history) & (history > 0) & (history <= 1e300))
    if not len(at):
        return None
    y = np.log10(np.maximum(history[at], 1e-300))
    low, high = math.floor(y.min()), math.ceil(y.max())
    return at, y, low, high + (high == low)


def _text_chart(history: np.ndarray, width: int, height: int) -> list[str]:
    found = _decades(history)
    if not found:
        return []
    at, y, low, high = found
    last = max(int(at[-1]), 1)
    cells = [[" "] * width for _ in range(height)]
    for x, value in zip(at, y):
        column = min(width - 1, int(x / last * (width - 1) + 0.5))
        row = min(height - 1, max(0, int((high - value) / (high - low) * (height - 1) + 0.5)))
        cells[row][column] = "*"
    lines = []
    for r in range(height):
        labelled = r in (0, height // 2, height - 1)
        label = f"{10 ** (high - (high - low) * r / (height - 1)):8.0e}" if labelled else " " * 8
        lines.append(f"{label} |{''.join(cells[r])}".rstrip())
    return lines + [" " * 9 + "+" + "-" * width, " " * 10 + "0" + str(last).rjust(width - 1)]


def _svg_chart(history: np.ndarray) -> str:
    found = _decades(history)
    if not found or len(history) < 2:
        return ""
    at, y, low, high = found
    width, height, left, below = 420, 180, 52, 22
    last = max(int(at[-1]), 1)
    # A screen has no more columns than this.
    step = max(1, len(at) // 2000)
    bottom = height - below
    across, down = (width - left - 6) / last, (bottom - 6) / (high - low)
    points = " ".join(f"{left + across * x:.1f},{6 + down * (high - v):.1f}" for x, v in zip(at[::step], y[::step]))
    return (f'<svg width="{width}" height="{height}" xmlns="http://www.w3.org/2000/svg" role="img">'
            f'<path d="M{left} 6V{bottom}H{width - 6}" stroke="currentColor" fill="none"/>'
            f'<polyline points="{points}" stroke="steelblue" stroke-width="1.5" fill="none"/>'
            '<g fill="currentColor" font-size="11" font-family="sans-serif">'
            f'<text x="{left - 4}" y="12" text-anchor="end">1e{high:+03.0f}</text>'
            f'<text x="{left - 4}" y="{bottom}" text-anchor="end">1e{low:+03.0f}</text>'
            f'<text x="{left}" y="{height - 6}">0</text>'
            f'<text x="{width - 6}" y="{height - 6}" text-anchor="end">{last} iterations</text></g></svg>')
