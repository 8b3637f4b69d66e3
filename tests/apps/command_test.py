#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The command krilu as a person or a script runs it: exit statuses, sentences, JSON, pictures, solutions checked against
# the matrix in Python, and what it does with bad files, a full disk and Ctrl-C. Argument 1: the command's path.
import gzip
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

COMMAND = None
BANNER = "%%MatrixMarket matrix coordinate real general\n"
FULL = "/dev/full"
SUBCOMMANDS = ("solve", "info", "compare")
# A square of two triangles.
SQUARE = """NDIME= 2
NELEM= 2
5 0 1 2
5 0 2 3
NPOIN= 4
0 0
1 0
1 1
0 1
NMARK= 1
MARKER_TAG= wall
MARKER_ELEMS= 4
3 0 1
3 1 2
3 2 3
3 3 0
"""


def poisson(n):
    """The tridiagonal matrix 2, -1 as entries {(row, column): value}, from 0."""
    entries = {}
    for i in range(n):
        entries[i, i] = 2.0
        if i > 0:
            entries[i, i - 1] = -1.0
        if i + 1 < n:
            entries[i, i + 1] = -1.0
    return entries


def unsymmetric(n):
    entries = poisson(n)
    for i in range(n - 1):
        entries[i, i + 1] = -0.5
    return entries


def five_points(nx, ny):
    """An unsymmetric five-point stencil."""
    entries = {}
    for i in range(nx * ny):
        entries[i, i] = 4.02
        for step, inside, value in ((-nx, i >= nx, -1.3), (-1, i % nx > 0, -1.1), (1, i % nx < nx - 1, -0.9),
                                    (nx, i < nx * (ny - 1), -0.7)):
            if inside:
                entries[i, i + step] = value
    return entries


def rows_in_levels(n, entries):
    """Of the lower triangle: a row's level is one above the highest of those it depends on."""
    level = [0] * n
    for i, j in sorted(entries):
        if j < i:
            level[i] = max(level[i], level[j] + 1)
    return [level.count(l) for l in range(max(level) + 1)]


def matrix_text(n, entries):
    lines = ["%d %d %r\n" % (i + 1, j + 1, v) for (i, j), v in sorted(entries.items())]
    return BANNER + "%d %d %d\n" % (n, n, len(lines)) + "".join(lines)


def vector_text(values):
    return "%%%%MatrixMarket matrix array real general\n%d 1\n%s" % (len(values), "".join("%r\n" % v for v in values))


def read_vector(path):
    with open(path) as f:
        lines = [line for line in f if not line.startswith("%")]
    rows, columns = map(int, lines[0].split())
    values = [float(line) for line in lines[1:]]
    assert columns == 1 and rows == len(values), (rows, columns, len(values))
    return values


def relative_residual(entries, x, b):
    r = list(b)
    for (i, j), v in entries.items():
        r[i] -= v * x[j]
    return math.sqrt(math.fsum(v * v for v in r) / math.fsum(v * v for v in b))


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="krilu-command-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        return self.path(name)

    def run_command(self, *arguments, **more):
        return subprocess.run([COMMAND] + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, timeout=120, cwd=self.folder, **more)

    def good(self, *arguments, status=0):
        done = self.run_command(*arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def refused(self, *arguments, words, status=2, silent=True):
        """Ends with status 2, one sentence on standard error, and nothing on standard output."""
        done = self.run_command(*arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        if silent:
            self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("krilu: "), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        return done

    def json_of(self, path):
        with open(path) as f:
            return json.load(f)

    def assert_picture(self, path):
        with open(path, "rb") as f:
            data = f.read()
        self.assertGreater(len(data), 2000)
        if path.endswith(".png"):
            self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        else:
            self.assertIn(b"<svg", data)
            self.assertTrue(data.rstrip().endswith(b"</svg>"))
        return data


class Solve(Case):
    def test_a_generated_system_and_its_whole_report(self):
        report = self.path("r.json")
        out = self.good("solve", "gen:convdiff2d:20x15", "--json", report, "--threads", "1", "--ordering", "rcm")
        self.assertIn("gen:convdiff2d:20x15", out)
        self.assertIn("300 rows, 1,430 nonzeros", out)
        self.assertIn("bicgstab with dilu, rcm ordering", out)
        self.assertIn("converged after", out)
        r = self.json_of(report)
        self.assertEqual({k: r["matrix"][k] for k in ("name", "rows", "nnz", "symmetric")},
                         {"name": "gen:convdiff2d:20x15", "rows": 300, "nnz": 1430, "symmetric": False})
        self.assertEqual((r["solver"], r["precond"], r["triangular"], r["ordering"], r["device"], r["status"]),
                         ("bicgstab", "dilu", "serial", "rcm", "host", "converged"))
        self.assertGreater(r["iterations"], 3)
        self.assertEqual(len(r["history"]), r["iterations"] + 1)
        self.assertEqual(r["history"][0], 1.0)
        self.assertEqual(r["history"][-1], r["relative_residual"])
        self.assertLessEqual(r["relative_residual"], 1e-8)
        self.assertGreater(r["relative_residual"], 0)
        self.assertGreater(r["rmse"], 0)
        self.assertLess(r["rmse"], r["relative_residual"])  # b is uniform in [-1, 1]
        self.assertEqual(set(r["seconds"]), {"read", "analyse", "factor", "solve"})
        for seconds in r["seconds"].values():
            self.assertTrue(0 <= seconds < 60, r["seconds"])
        self.assertGreater(r["bytes"], 12 * 1130 + 8 * 300 * 10)
        self.assertEqual(r["notes"], [])

    def test_finite_volumes_on_a_mesh_of_su2(self):
        self.write("square.su2", SQUARE)
        out = self.good("solve", "gen:fv:square.su2,3")
        self.assertIn("6 rows, 20 nonzeros", out)  # 2 cells in each of 3 layers, 1 face within one, 2 to the next
        self.assertIn("converged after", out)
        self.assertRegex(self.good("info", "square.su2"), r"cells +2, with 5 to 5 faces")
        self.write("short.su2", SQUARE.replace("1 1\n0 1\n", "1 1\n"))
        self.refused("solve", "gen:fv:short.su2", words=["short.su2:"])
        self.refused("solve", "gen:fv:none.su2", words=["none.su2"])

    def test_json_alone_on_standard_output(self):
        r = json.loads(self.good("solve", "gen:poisson2d:9x9", "--json", "-"))
        self.assertTrue(r["matrix"]["symmetric"])
        self.assertEqual((r["solver"], r["precond"]), ("cg", "dic"))

    def test_the_solution_alone_on_standard_output(self):
        self.good("solve", "gen:poisson2d:9x9", "-o", "x.mtx")
        with open(self.path("x.mtx")) as f:
            self.assertEqual(self.good("solve", "gen:poisson2d:9x9", "-o", "-"), f.read())

    def test_the_solution_solves_the_system(self):
        for entries, solver in ((poisson(50), "cg"), (unsymmetric(50), "bicgstab"), (unsymmetric(50), "gmres")):
            matrix = self.write("a.mtx", matrix_text(50, entries))
            b = [math.sin(3.0 * i) for i in range(50)]
            rhs = self.write("right.mtx", vector_text(b))
            out = self.good("solve", matrix, "--rhs", rhs, "--solver", solver, "--rtol", "1e-11", "-o", "x.mtx",
                            "--json", "r.json")
            self.assertIn("solution", out)
            residual = relative_residual(entries, read_vector(self.path("x.mtx")), b)
            self.assertLessEqual(residual, 1e-11)
            self.assertAlmostEqual(residual, self.json_of(self.path("r.json"))["relative_residual"], delta=1e-14)

    def test_right_hand_sides(self):
        matrix = self.write("a.mtx", matrix_text(40, poisson(40)))

        def solution(*arguments):
            self.good("solve", matrix, "--rtol", "1e-12", "-o", "x.mtx", *arguments)
            return read_vector(self.path("x.mtx"))

        ones = solution("--rhs", "ones")
        self.assertLessEqual(relative_residual(poisson(40), ones, [1.0] * 40), 1e-12)
        seven, again, eight = (solution("--rhs", "random:" + s) for s in ("7", "7", "8"))
        self.assertEqual(seven, again)
        self.assertNotEqual(seven, eight)
        uniform = solution("--rhs", "uniform01:7")
        for i in range(40):  # the same numbers in [0, 1) and in [-1, 1): b' = 2 b - 1
            self.assertAlmostEqual(seven[i], 2 * uniform[i] - ones[i], delta=1e-7)
        self.assertEqual(solution(), solution("--rhs", "random:1"))

        # A neighbour of the matrix is taken unasked; a named one before it.
        b = [float(i % 3) for i in range(40)]
        self.write("a_b.mtx", vector_text(b))
        self.assertLessEqual(relative_residual(poisson(40), solution(), b), 1e-12)
        self.assertIn("a_b.mtx", self.good("solve", matrix))
        self.assertEqual(solution("--rhs", "ones"), ones)

    def test_a_compressed_matrix_and_its_compressed_neighbour(self):
        self.write("c.mtx.gz", gzip.compress(matrix_text(30, unsymmetric(30)).encode()))
        b = [float(i - 10) for i in range(30)]
        self.write("c_b.mtx.gz", gzip.compress(vector_text(b).encode()))
        self.good("solve", self.path("c.mtx.gz"), "-o", "x.mtx")
        self.assertLessEqual(relative_residual(unsymmetric(30), read_vector(self.path("x.mtx")), b), 1e-8)

    def test_the_initial_guess(self):
        matrix = self.write("a.mtx", matrix_text(40, poisson(40)))
        self.good("solve", matrix, "-o", "x.mtx", "--rtol", "1e-12")
        self.good("solve", matrix, "--x0", "x.mtx", "--rtol", "1e-11", "--json", "r.json")
        self.assertEqual(self.json_of(self.path("r.json"))["iterations"], 0)
        self.write("short.mtx", vector_text([1.0] * 39))
        self.refused("solve", matrix, "--x0", "short.mtx", words=["short.mtx", "initial guess has 39 entries", "40 rows"])

    def test_explain_and_quiet(self):
        self.assertIn("solver cg: the matrix is symmetric", self.good("solve", "gen:poisson2d:9x9", "--explain"))
        self.assertNotIn("solver cg: ", self.good("solve", "gen:poisson2d:9x9"))
        self.assertEqual(self.good("solve", "gen:poisson2d:9x9", "--quiet"), "")

    def test_openfoam_norm(self):
        out = self.good("solve", "gen:poisson2d:20x20", "--norm", "openfoam", "--rtol", "1e-3", "--json", "r.json")
        self.assertIn("OpenFOAM", out)
        history = self.json_of(self.path("r.json"))["history"]
        self.assertLessEqual(history[-1], 1e-3 * history[0])
        self.assertGreater(history[-2], 1e-3 * history[0])

    def test_not_converged(self):
        out = self.good("solve", "gen:poisson2d:30x30", "--max-iters", "3", "-o", "x.mtx", "--json", "r.json", status=3)
        self.assertIn("not converged after 3 iterations: that is the limit, --max-iters 3", out)
        self.assertEqual(len(read_vector(self.path("x.mtx"))), 900)
        self.assertEqual(self.json_of(self.path("r.json"))["status"], "max_iterations")
        skew = self.write("s.mtx", BANNER + "2 2 2\n1 2 1\n2 1 -1\n")
        b = self.write("e.mtx", vector_text([1.0, 0.0]))
        out = self.good("solve", skew, "--rhs", b, "--solver", "bicgstab", "--precond", "none", status=3)
        self.assertIn("broke down after 0 iterations", out)

    def test_a_zero_diagonal(self):
        entries = {(0, 0): 2.0, (0, 1): 1.0, (1, 0): 1.0, (1, 2): 1.0, (2, 1): 3.0, (2, 2): 1.0}
        matrix = self.write("z.mtx", matrix_text(3, entries))
        self.good("solve", matrix, "--json", "r.json")
        r = self.json_of(self.path("r.json"))
        self.assertEqual((r["solver"], r["precond"]), ("gmres", "none"))
        self.assertIn("first in row 2", r["notes"][0])
        stored = self.write("zero.mtx", matrix_text(2, {(0, 0): 0.0, (0, 1): 1.0, (1, 0): 1.0, (1, 1): 2.0}))
        self.refused("solve", stored, "--precond", "dilu", words=["dilu: zero pivot in row 1", "--shift"])
        self.refused("solve", stored, "--precond", "jacobi", words=["row 1", "--precond none"])

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_pictures(self):
        for name in ("p.png", "p.svg"):
            self.assertIn(name, self.good("solve", "gen:poisson2d:20x20", "--plot", name))
            data = self.assert_picture(self.path(name))
        self.assertIn(b"gen:poisson2d:20x20, cg with dic", data)
        self.assertIn(b"tolerance", data)

    def test_a_picture_of_another_kind_is_refused_before_any_work(self):
        for command in (["solve"], ["info"], ["compare", "--precond", "none"]):
            self.refused(*(command + ["gen:poisson2d:2000x2000", "--plot", "p.jpg"]), words=[".png or .svg"])

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_the_name_of_a_picture_is_no_command(self):
        name = "|touch made;.png"
        self.good("solve", "gen:poisson2d:20x20", "--plot", name)
        self.assertEqual(os.listdir(self.folder), [name])

    def test_a_picture_without_gnuplot_is_refused_with_its_remedy(self):
        done = self.run_command("solve", "gen:poisson2d:5x5", "--plot", "p.png", env={"PATH": self.folder})
        self.assertEqual(done.returncode, 2)
        self.assertIn("gnuplot, which is not installed", done.stderr)

    def test_mixed_precision_gives_double_answers(self):
        for precision in ("fp32", "fp32/fp16", "fp32/bf16"):
            out = self.good("solve", "gen:convdiff3d:12x12x12", "--solver", "gmres-ir", "--precision", precision, "--rtol",
                            "1e-11", "--json", "r.json")
            report = self.json_of(self.path("r.json"))
            self.assertEqual((report["status"], report["solver"]), ("converged", "gmres-ir"))
            self.assertTrue(report["precision"].startswith(precision), report["precision"])
            self.assertGreater(report["outer_iterations"], 1)
            self.assertLessEqual(report["relative_residual"], 1e-11)
            self.assertIn("%s, %d inner solves" % (report["precision"], report["outer_iterations"]), out)
        self.refused("solve", "gen:poisson2d:5x5", "--precision", "fp46", words=["precision", "'fp64'"])
        self.refused("solve", "gen:poisson2d:5x5", "--basis", "fp8", words=["format", "'fp8'"])
        self.refused("solve", "gen:poisson2d:5x5", "--solver", "gmres-ir", "--inner-rtol", "2", words=["inner-rtol"])


class BadInput(Case):
    def test_files(self):
        whole = gzip.compress(matrix_text(200, poisson(200)).encode())
        cases = [
            ("header.mtx", "3 3 1\n1 1 1\n", ["header.mtx:1", "not a Matrix Market file"]),
            ("text.mtx", BANNER + "2 2 2\n1 1 abc\n2 2 1\n", ["text.mtx:3", "'abc'"]),
            ("zero.mtx", BANNER + "2 2 2\n1 0 3\n2 2 1\n", ["zero.mtx:3", "is 0", "counts from 1"]),
            ("range.mtx", BANNER + "2 2 2\n1 1 3\n2 3 1\n", ["range.mtx:4", "'3' is outside 1 to 2"]),
            ("nan.mtx", BANNER + "2 2 2\n1 1 nan\n2 2 1\n", ["nan.mtx:3", "'nan'"]),
            ("inf.mtx", BANNER + "2 2 2\n1 1 1\n2 2 -inf\n", ["inf.mtx:4", "'-inf'"]),
            ("short.mtx", BANNER + "2 2 3\n1 1 1\n2 2 1\n", ["short.mtx", "3 entries"]),
            ("large.mtx", BANNER + "9 9 3000000000\n1 1 1\n", ["large.mtx:2", "3000000000", "fewer than 2147483648"]),
            ("cut.mtx.gz", whole[:len(whole) // 2], ["cut.mtx.gz", "gzip data ends too early"]),
        ]
        for name, text, words in cases:
            path = self.write(name, text)
            for command in (["solve"], ["info"], ["compare", "--precond", "none"]):
                with self.subTest(name, command=command[0]):
                    self.refused(*(command + [path]), words=words)

    def test_missing(self):
        self.refused("solve", "nothing.mtx", words=["nothing.mtx", "No such file"])
        self.refused("solve", self.folder, words=["folder"])
        matrix = self.write("a.mtx", matrix_text(3, poisson(3)))
        self.refused("solve", matrix, "--rhs", "nothing.mtx", words=["nothing.mtx", "No such file"])

    def test_systems(self):
        wide = self.write("wide.mtx", BANNER + "3 2 2\n1 1 2\n3 2 1\n")
        self.refused("solve", wide, words=["3 rows and 2 columns", "square"])
        self.assertIn("not square", self.good("info", wide))
        empty = self.write("empty.mtx", BANNER + "3 3 2\n1 1 2\n3 3 1\n")
        self.refused("solve", empty, words=["row 2 is empty", "singular"])
        matrix = self.write("a.mtx", matrix_text(4, poisson(4)))
        rhs = self.write("three.mtx", vector_text([1.0, 2.0, 3.0]))
        self.refused("solve", matrix, "--rhs", rhs, words=["three.mtx", "right-hand side has 3 entries", "4 rows"])
        self.refused("solve", matrix, "--rhs", self.write("n.mtx", vector_text([1.0, 2.0, 3.0, float("nan")])),
                     words=["n.mtx:6"])

    def test_names(self):
        g = "gen:poisson2d:5x5"
        self.refused("slove", g, words=["unknown command 'slove'", "'solve'"])
        self.refused("--versoin", words=["unknown option '--versoin'", "'--version'"])
        self.refused("solve", g, "--precon", "dic", words=["unknown option '--precon'", "'--precond'", "solve --help"])
        self.refused("info", g, "--jsn=x", words=["unknown option '--jsn'", "'--json'", "info --help"])
        self.refused("compare", g, "--precond", "none", "--solvr", "cg", words=["unknown option '--solvr'", "'--solver'"])
        self.refused("solve", g, "--precond", "dlu", words=["unknown preconditioner 'dlu'", "'dilu'"])
        self.refused("compare", g, "--precond", "none,jacoby", words=["unknown preconditioner 'jacoby'", "'jacobi'"])
        self.refused("solve", g, "--solver", "bicgstb", words=["unknown solver 'bicgstb'", "'bicgstab'"])
        self.refused("solve", g, "--ordering", "rcn", words=["unknown ordering 'rcn'", "'rcm'"])
        self.refused("solve", g, "--triangular", "levelset", words=["'levelset'", "'level-set'"])
        self.refused("solve", g, "--device", "emulate", words=["unknown device 'emulate'", "'emulated'"])
        self.refused("solve", g, "--norm", "two", words=["'two' is neither true2 nor openfoam"])
        self.refused("solve", "gen:poison2d:5x5", words=["'poisson2d'"])
        self.refused("solve", "gen:poisson2d:5x5x5", words=["SIZE has 2 numbers"])

    def test_numbers(self):
        g = "gen:poisson2d:5x5"
        self.refused("solve", g, "--rtol", "-1", words=["rtol"])
        self.refused("solve", g, "--rtol", "small", words=["--rtol takes a number, not 'small'"])
        self.refused("solve", g, "--max-iters", "1e3", words=["--max-iters takes a whole number, not '1e3'"])
        matrix = self.write("a.mtx", matrix_text(2, {(0, 0): 1, (1, 1): 1}))
        for command, system in (("solve", g), ("solve", matrix), ("info", g), ("info", matrix), ("info", "mesh:box:3x3x3")):
            self.refused(command, system, "--threads", "20000", words=["threads is 20000", "at most 4096"])
        self.refused("info", g, "--threads", "-2", words=["threads is a whole number"])
        self.refused("solve", g, "--threads", "two", words=["--threads takes a whole number, not 'two'"])
        self.refused("solve", g, "--max-iters", "-3", words=["max-iters"])
        self.refused("solve", g, "--max-iters", "-", words=["--max-iters takes a whole number, not '-'"])
        for name, kind in ("--max-iters", "a whole number"), ("--rtol", "a number"):  # as an unset variable leaves it
            self.refused("solve", g, name, "", words=[f"{name} takes {kind}, not ''"])
            self.refused("solve", g, f"{name}=", words=[name])
        self.refused("solve", g, "--max-iters", 30 * "9", words=["--max-iters cannot be 999", "too large"])
        self.refused("solve", g, "--rhs", "random:x", words=["--rhs random:x", "seed"])
        self.refused("solve", g, "--solver", "gmres", "--norm", "openfoam", words=["gmres", "2-norm"])

    def test_outputs_before_any_work(self):
        huge = ["solve", "gen:poisson3d:1200x1200x1000"]  # fewer rows than 2^31, and more than there is memory for
        self.refused(*huge, "-o", "nowhere/x.mtx", words=["nowhere/x.mtx", "no folder nowhere"])
        self.refused(*huge, "--json", self.folder, words=[self.folder, "is a folder"])
        self.refused(*huge, "--plot", "nowhere/a.png", words=["nowhere/a.png", "no folder nowhere"])
        self.refused(*huge, "-o", "a", "--json", "a", words=["two outputs"])
        self.refused("compare", huge[1], "--precond", "none", "--json", "nowhere/r.json", words=["no folder nowhere"])
        self.refused("info", huge[1], "--json", "nowhere/r.json", words=["no folder nowhere"])
        text = matrix_text(4, poisson(4))
        matrix = self.write("a.mtx", text)
        for path in (matrix, os.path.join(self.folder, ".", "a.mtx")):
            self.refused("solve", matrix, "-o", path, words=["is what is read"])
        rhs = self.write("a_b.mtx", vector_text([1.0] * 4))
        self.refused("solve", matrix, "-o", rhs, words=["is what is read"])
        os.remove(rhs)
        for one, other in (("x", "./x"), ("x", self.path("x")), ("-", "/dev/stdout")):
            self.refused("solve", matrix, "-o", one, "--json", other, words=["two outputs"])
        self.refused("solve", matrix, "-o", "a.mtx/x", words=["a file"])
        self.refused("grid", "--shape", "naca:0012", "-o", "g.xyz", "--json", "./g.xyz", words=["two outputs"])
        self.refused("bench", "gmres-ir-paper", "--json", "r", "--markdown", "r", words=["two outputs"])
        with open(matrix) as f:
            self.assertEqual(f.read(), text)
        self.assertEqual(os.listdir(self.folder), ["a.mtx"])
        # To go on from the last answer and replace it is as it should be.
        self.good("solve", matrix, "-o", "x.mtx")
        self.good("solve", matrix, "--x0", "x.mtx", "-o", "x.mtx")
        # Links stay, whether they lead to a file or not yet.
        for target in ("x.mtx", "y.mtx"):
            os.symlink(target, self.path("to-" + target))
            self.good("solve", matrix, "-o", "to-" + target)
            self.assertTrue(os.path.islink(self.path("to-" + target)))
            self.assertEqual(len(read_vector(self.path(target))), 4)

    def test_standard_output_goes_on_where_it_is(self):
        matrix = self.write("a.mtx", matrix_text(4, poisson(4)))
        os.symlink("/dev/stdout", self.path("link"))
        answer = self.good("solve", matrix, "-o", "-")
        for name in ("-", "/dev/stdout", "/dev/fd/1", "link"):
            with open(self.path("log"), "w") as log:
                log.write("before\n")
                log.flush()
                subprocess.run([COMMAND, "solve", matrix, "--quiet", "-o", name], stdout=log, timeout=60, check=True,
                               cwd=self.folder)
                log.seek(0, os.SEEK_END)
                log.write("after\n")
            with open(self.path("log")) as log:
                self.assertEqual(log.read(), "before\n" + answer + "after\n")
        with open(self.path("log"), "w") as log:  # after the table
            subprocess.run([COMMAND, "solve", matrix, "-o", "/dev/stdout"], stdout=log, timeout=60, check=True)
        with open(self.path("log")) as log:
            self.assertRegex(log.read(), r"(?s)converged.*%%MatrixMarket.*solution")

    @unittest.skipIf(os.geteuid() == 0, "the system lets root write anywhere")
    def test_a_folder_of_others(self):
        os.chmod(self.folder, 0o500)
        self.addCleanup(os.chmod, self.folder, 0o700)
        self.refused("solve", "gen:poisson2d:5x5", "-o", self.path("x.mtx"), words=["x.mtx", "Permission denied"])

    def test_empty_names(self):
        g = "gen:poisson2d:5x5"
        self.refused("solve", "", words=["MATRIX", "name is empty"])
        for option in ("--rhs", "--x0", "-o", "--json", "--plot"):
            self.refused("solve", g, option, "", words=["name is empty"])
        for command in (["compare", g, "--precond", "none"], ["info", g], ["grid", "--shape", "naca:0012"],
                        ["bench", "gmres-ir-paper"]):
            self.refused(*command, "--json", "", words=["name is empty"])
        self.refused("solve", g, "--partition", "metis", words=["--partition", "--ranks"])

    def test_too_little(self):
        self.refused(words=["subcommand"])
        self.refused("solve", words=["MATRIX"])
        self.refused("compare", "gen:poisson2d:5x5", words=["--precond"])


@unittest.skipUnless(os.path.exists(FULL), "there is no /dev/full")
class FullDisk(Case):
    def test_the_answer(self):
        done = self.refused("solve", "gen:poisson2d:9x9", "-o", FULL, "--json", "r.json", silent=False,
                            words=["could not write /dev/full", "No space left"])
        self.assertIn("converged after", done.stdout)
        self.assertEqual(self.json_of(self.path("r.json"))["status"], "converged")

    def test_the_report(self):
        done = self.refused("solve", "gen:poisson2d:9x9", "-o", "x.mtx", "--json", FULL, silent=False,
                            words=["could not write /dev/full", "No space left"])
        self.assertIn("converged after", done.stdout)
        self.assertEqual(len(read_vector(self.path("x.mtx"))), 81)
        self.refused("info", "gen:poisson2d:9x9", "--json", FULL, silent=False, words=["could not write /dev/full"])

    def test_standard_output(self):
        for arguments in (["solve"], ["info"], ["compare", "--precond", "none"], ["solve", "--json", "-"]):
            with open(FULL, "w") as full:
                done = subprocess.run([COMMAND] + arguments + ["gen:poisson2d:9x9"], stdout=full, stderr=subprocess.PIPE,
                                      universal_newlines=True, timeout=60)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn("could not write", done.stderr)


class Interrupt(Case):
    endless = ["gen:poisson2d:150x150", "--solver", "gmres", "--restart", "2", "--precond", "none", "--rtol", "0",
               "--max-iters", "5000000", "--threads", "1"]

    def interrupt(self, *arguments, times=1):
        """Ctrl-C while it solves; later where it came before the solve had begun."""
        for delay in (0.5, 2, 8):
            process = subprocess.Popen([COMMAND] + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       universal_newlines=True, cwd=self.folder)
            time.sleep(delay)
            self.assertIsNone(process.poll(), "it was to take longer")
            for _ in range(times):
                process.send_signal(signal.SIGINT)
                time.sleep(0.02)
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 3, out + err)
            if "before there was a result" not in err:
                return out, err
        self.fail("the solve never began")

    def test_solve(self):
        out, err = self.interrupt("solve", *self.endless, "-o", "x.mtx", "--json", "r.json")
        self.assertEqual(err, "")
        self.assertIn("interrupted after", out)
        self.assertIn("true residual", out)
        r = self.json_of(self.path("r.json"))
        self.assertEqual(r["status"], "interrupted")
        self.assertGreater(r["iterations"], 0)
        self.assertLess(r["relative_residual"], 1)
        self.assertEqual(len(read_vector(self.path("x.mtx"))), 22500)

    def test_one_interrupt_that_arrives_twice_as_from_timeout(self):
        out, err = self.interrupt("solve", *self.endless, times=2)
        self.assertEqual(err, "")
        self.assertIn("interrupted after", out)

    def test_compare_ends_with_the_one_that_ran(self):
        out, _ = self.interrupt("compare", *self.endless[:-6], "--rtol", "0", "--max-iters", "5000000", "--threads", "1",
                                "--precond", "none,jacobi")
        self.assertIn("interrupted", out)
        self.assertNotIn("jacobi ", out)


    def test_bench_leaves_what_was_measured(self):
        self.write("apache2.mtx", matrix_text(40, unsymmetric(40)))
        for delay in (1, 4, 12):
            process = subprocess.Popen([COMMAND, "bench", "dilu-paper", "--matrices", ".", "--only",
                                        "apache2,atmosmodd", "--device", "host", "--threads", "1", "--repeat", "100",
                                        "--json", "r.json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       universal_newlines=True, cwd=self.folder)
            time.sleep(delay)
            self.assertIsNone(process.poll(), "it was to take longer")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=120)
            self.assertEqual((process.returncode, err), (3, ""), out)
            report = self.json_of(self.path("r.json"))
            if "dilu_cpu" in report["rows"][0]["runs"]:
                break
        else:
            self.fail("the first matrix was never done")
        self.assertTrue(report["interrupted"])
        self.assertIn("Interrupted: what was measured until then is above.", out)
        small, large = report["rows"]
        self.assertEqual((small["source"], small["from"]), ("file", "apache2.mtx"))
        self.assertEqual(small["runs"]["dilu_levels"]["status"], "converged")
        self.assertEqual((large["source"], large["from"]), ("generated", "gen:convdiff3d:148x148x58"))
        self.assertNotIn("dilu_cpu", large["runs"])
        self.assertIn("atmosmodd (gen)", out)
        self.assertIn("gen:convdiff3d:148x148x58 stands for it", out)
        self.assertIn("`tools/fetch-matrices --to FOLDER atmosmodd`", out)


class Info(Case):
    def test_numbers(self):
        out = self.good("info", "gen:convdiff2d:12x7", "--json", "i.json")
        j = self.json_of(self.path("i.json"))
        self.assertEqual((j["name"], j["rows"], j["columns"], j["nnz"]), ("gen:convdiff2d:12x7", 84, 84, 382))
        self.assertEqual((j["symmetric"], j["pattern_symmetric"], j["bandwidth"]), (False, True, 12))
        self.assertEqual(j["row_length"], {"least": 3, "most": 5})
        self.assertEqual(j["diagonal"], {"missing": 0, "zero": 0, "negative": 0})
        self.assertEqual((j["dominant_rows"], j["empty_rows"], j["duplicates"], j["stored_zeros"]), (84, 0, 0, 0))
        self.assertEqual(j["levels"], {"lower": 18, "upper": 18})
        for triangle in ("lower", "upper"):
            rows = j["rows_per_level"][triangle]
            self.assertEqual((len(rows), sum(rows), rows[0], max(rows)), (18, 84, 1, 7))
        for words in ("84 rows", "382", "levels below", "18 (rows in one: median 5, most 7)", "bandwidth"):
            self.assertIn(words, out)
        self.assertEqual(json.loads(self.good("info", "gen:convdiff2d:12x7", "--json", "-")), j)

    def test_what_is_wrong_with_a_matrix(self):
        text = BANNER + "4 4 6\n1 1 2\n1 1 3\n2 1 -7\n3 3 0\n4 4 -1\n1 4 1e-3\n"
        self.good("info", self.write("m.mtx", text), "--json", "i.json")
        j = self.json_of(self.path("i.json"))
        self.assertEqual((j["nnz"], j["duplicates"], j["stored_zeros"]), (5, 1, 1))
        self.assertEqual(j["diagonal"], {"missing": 1, "zero": 1, "negative": 1, "first_bad_row": 2})
        self.assertEqual(j["magnitude"], {"least": 1e-3, "most": 7.0})
        self.assertFalse(j["pattern_symmetric"])

    def test_condition(self):
        # Row i of the inverse, counted from 1, sums up to i (n + 1 - i) / 2.
        matrix = self.write("p.mtx", matrix_text(40, poisson(40)))
        out = self.good("info", matrix, "--condition", "--json", "i.json")
        out = " ".join(out.split())
        self.assertRegex(out, r"condition 8\.4e\+02 in the infinity norm, estimated \(.*, \d+ solves\)")
        c = self.json_of(self.path("i.json"))["condition"]
        self.assertEqual((c["norm"], c["singular"]), ("infinity", False))
        self.assertLess(abs(c["estimate"] / (4 * 20 * 21 / 2) - 1), 1e-4)
        self.assertGreater(c["solves"], 3)
        self.assertRegex(c["by"], r"^(SuperLU \d+\.\d+|krilu gmres.*)$")
        empty = self.write("empty.mtx", BANNER + "3 3 2\n1 1 2\n3 3 1\n")
        self.assertIn("infinite: the matrix is singular", self.good("info", empty, "--condition", "--json", "e.json"))
        c = self.json_of(self.path("e.json"))["condition"]
        self.assertTrue(c["singular"])
        self.assertNotIn("estimate", c)
        self.assertNotIn("condition", self.good("info", matrix))
        wide = self.write("wide.mtx", BANNER + "3 2 2\n1 1 2\n3 2 1\n")
        self.refused("info", wide, "--condition", words=["only a square matrix has a condition number"], silent=False)

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_picture(self):
        for name in ("i.png", "i.svg"):
            self.good("info", "gen:convdiff2d:12x7", "--plot", name)
            data = self.assert_picture(self.path(name))
        self.assertIn(b"lower triangle, 18 levels", data)
        wide = self.write("wide.mtx", BANNER + "3 2 2\n1 1 2\n3 2 1\n")
        self.refused("info", wide, "--plot", "w.png", words=["only a square matrix"], silent=False)


class Compare(Case):
    def test_a_name_keeps_its_own_commas(self):
        for names, expected in (("none,ras:4,1,ilut:7,0.1", ["none", "ras:4,1", "ilut:7,0.1"]),
                                ("dilu;ras:4,1,dilu", ["dilu", "ras:4,1,dilu"])):
            self.good("compare", "gen:convdiff2d:20x20", "--precond", names, "--json", "c.json")
            self.assertEqual([r["precond"] for r in self.json_of(self.path("c.json"))], expected)

    def test_preconditioners_that_are_not_symmetric_are_not_given_to_cg(self):
        self.good("compare", "gen:poisson2d:20x20", "--precond", "ras:4,1", "--json", "c.json")
        self.assertEqual(self.json_of(self.path("c.json"))[0]["solver"], "bicgstab")
        self.good("solve", "gen:poisson2d:20x20", "--precond", "ras:4,1", "--json", "s.json")
        report = self.json_of(self.path("s.json"))
        self.assertEqual((report["solver"], report["status"], report["precond"]), ("bicgstab", "converged", "ras:4,1"))

    def test_rows_and_report(self):
        out = self.good("compare", "gen:convdiff2d:20x20", "--precond", "none,jacobi,dilu,ilu0", "--json", "c.json")
        reports = self.json_of(self.path("c.json"))
        self.assertEqual([r["precond"] for r in reports], ["none", "jacobi", "dilu", "ilu0"])
        for r in reports:
            self.assertEqual((r["solver"], r["status"]), ("bicgstab", "converged"))
            self.assertLessEqual(r["relative_residual"], 1e-8)
            self.assertEqual(len(r["history"]), r["iterations"] + 1)
            row = [line.split() for line in out.splitlines() if line.startswith("  " + r["precond"] + " ")]
            self.assertEqual(len(row), 1, out)
            self.assertEqual(row[0][1:3], ["converged", str(r["iterations"])])
            self.assertEqual(row[0][5], "%.3e" % r["relative_residual"])
        self.assertLess(reports[2]["iterations"], reports[0]["iterations"])

    def test_the_list_ends_at_a_blank(self):
        out = self.good("compare", "--precond", "jacobi,none", "gen:poisson2d:12x12", "--max-iters", "200")
        self.assertEqual(out.count(" converged "), 2)

    def test_symmetric_ones_take_cg(self):
        self.good("compare", "gen:poisson2d:12x12", "--precond", "none,dic,ic0", "--json", "c.json")
        self.assertEqual([r["solver"] for r in self.json_of(self.path("c.json"))], ["cg"] * 3)

    def test_one_that_fails_stands_alone(self):
        out = self.good("compare", "gen:convdiff2d:12x12", "--precond", "dic,dilu,ic0,none", "--json", "c.json", status=3)
        reports = self.json_of(self.path("c.json"))
        self.assertEqual([r["precond"] for r in reports], ["dic", "dilu", "ic0", "none"])
        self.assertIn("symmetric", reports[0]["error"])
        self.assertEqual(reports[1]["status"], "converged")
        self.assertIn("symmetric", reports[2]["error"])
        self.assertEqual(reports[3]["status"], "converged")
        self.assertIn("dic needs a symmetric matrix", out)
        # A limit that only some of them keep: the worst decides the exit status.
        out = self.good("compare", "gen:poisson2d:30x30", "--precond", "none,dic", "--max-iters", "40", status=3)
        self.assertEqual([line.split()[1] for line in out.splitlines() if line.startswith(("  none", "  dic"))],
                         ["max_iterations", "converged"])

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_picture(self):
        for name in ("c.png", "c.svg"):
            self.good("compare", "gen:convdiff2d:12x12", "--precond", "jacobi,dilu", "--plot", name)
            data = self.assert_picture(self.path(name))
        for word in (b"jacobi", b"dilu", b"gen:convdiff2d:12x12, bicgstab"):
            self.assertIn(word, data)


class Bench(Case):
    def line(self, text, title, matrix):
        """The cells of the matrix's line in the table under the title."""
        table = text.split("\n## " + title, 1)[1].split("\n## ", 1)[0]
        lines = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")]
        self.assertEqual({len(cells) for cells in lines}, {len(lines[0])})
        found = [[cell.strip() for cell in cells] for cells in lines if cells[0].strip() == matrix]
        self.assertEqual(len(found), 1, table)
        return found[0]

    def test_the_dilu_paper(self):
        systems = {"apache2": (five_points(12, 9), 108), "cage13": (unsymmetric(50), 50)}
        for name, (entries, n) in systems.items():
            self.write(name + ".mtx", matrix_text(n, entries))
        self.write("atmosmodd.mtx.gz", gzip.compress(matrix_text(30, poisson(30)).encode()))
        arguments = ["bench", "dilu-paper", "--only", "cage13,G3_circuit,apache2,atmosmodd", "--device", "host",
                     "--threads", "1", "--repeat", "2", "--json", "r.json", "--markdown", "t.md"]
        with mock.patch.dict(os.environ, {"KRILU_MATRICES": self.folder}):
            out = self.good(*arguments)
        with open(self.path("t.md")) as f:
            text = f.read()
        self.assertEqual(out[:len(text)], text)
        report = self.json_of(self.path("r.json"))
        command = "krilu " + " ".join(arguments)
        self.assertEqual(report["command"], command)
        self.assertIn("`%s`" % command, text)
        self.assertEqual(report["machine"]["device"], "host")
        self.assertEqual(report["rules"], {"solver": "bicgstab", "rhs": "uniform01:1", "rtol": 1e-8,
                                           "max_iterations": 500, "repeat": 2})
        self.assertFalse(report["interrupted"])
        rows = {row["matrix"]: row for row in report["rows"]}
        self.assertEqual(list(rows), ["apache2", "atmosmodd", "cage13", "G3_circuit"])  # as the paper has them
        self.assertEqual({name: row["source"] for name, row in rows.items()},
                         {"apache2": "file", "atmosmodd": "file", "cage13": "file", "G3_circuit": "missing"})
        self.assertIn("Missing: G3_circuit.", text)
        self.assertIn("`tools/fetch-matrices --to FOLDER G3_circuit`", text)

        for name, (entries, n) in systems.items():
            row = rows[name]
            runs = row["runs"]
            self.assertEqual((row["rows"], row["nnz"]), (n, len(entries)))
            self.assertEqual(row["levels"]["rows_per_level"], rows_in_levels(n, entries))
            self.assertIn("not the paper's matrix: %d rows" % n, text)
            for key in ("none", "dilu_levels", "dilu_free", "dilu_cpu", "ilu_levels", "choice"):
                self.assertEqual(runs[key]["status"], "converged", key)
                self.assertLessEqual(runs[key]["relative_residual"], 1e-8)
                self.assertEqual(len(runs[key]["each"]), 1 if key == "none" else 2)
            self.assertEqual(runs["ilu_free"]["iterations"], 0)  # set-up alone
            self.assertEqual(runs["dilu_levels"]["triangular"], "level-set")
            self.assertEqual(runs["dilu_free"]["triangular"], "sync-free")
            self.assertEqual(runs["dilu_cpu"]["triangular"], "serial")
            iterations = runs["dilu_levels"]["iterations"]
            self.assertEqual(runs["none_as_long"]["iterations"], min(iterations, runs["none"]["iterations"]))
            for key in ("none", "dilu_levels", "ilu_levels"):  # Figure 6
                self.assertEqual(len(runs[key]["history"]), runs[key]["iterations"] + 1)

            middle = {part: sum(each[part] for each in runs["dilu_levels"]["each"]) / 2
                      for part in ("analyse", "factor", "solve")}
            paper = {"apache2": ("74.16", "500", "15.39", "15.47", "122.3"),
                     "cage13": ("62.02", "7", "0.1203", "0.135", "201.5")}[name]
            cells = self.line(text, "Table 2", name)
            self.assertEqual(cells[1:3], [paper[0], "%.4g" % (1e3 * middle["factor"])])
            cells = self.line(text, "Table 3", name)
            self.assertEqual(cells[1:3] + cells[7:9], [paper[1], str(iterations), paper[2], "%.4g" % middle["solve"]])
            self.assertEqual(self.line(text, "Table 4", name)[5], paper[4])
            cells = self.line(text, "Table 5", name)
            self.assertEqual(cells[3], paper[3])
            self.assertAlmostEqual(float(cells[4]) / sum(middle.values()), 1, delta=1e-3)
            cells = self.line(text, "Figure 7", name)
            self.assertEqual(cells[1], str(len(rows_in_levels(n, entries))))
        self.assertEqual(rows["cage13"]["paper"]["solve_s"]["cpu"], 0.393182)

    def test_the_mixed_precision_paper(self):
        self.write("sherman1.mtx", matrix_text(1000, five_points(40, 25)))
        out = self.good("bench", "gmres-ir-paper", "--only", "sherman1,gen:poisson2d:128x128", "--matrices", ".", "--repeat",
                        "1", "--json", "r.json", "--markdown", "t.md")
        with open(self.path("t.md")) as f:
            text = f.read()
        self.assertEqual(out[:len(text)], text)
        for part in ("Table 2", "Table 3", "Pearson", "geometric mean"):
            self.assertIn(part.lower(), text.lower())
        rows = self.json_of(self.path("r.json"))["rows"]
        self.assertEqual([row["rows"] for row in rows if row["source"] != "missing"], [1000, 16384])
        self.refused("bench", "gmres-ir-paper", "--only", "sherman9", words=["'sherman9'", "'sherman"])

    def test_the_mesh_paper(self):
        out = self.good("bench", "mesh-paper", "--only", "box-10k", "--repeat", "1", "--json", "-", "--device", "host")
        report = json.loads(out)
        self.assertEqual(report["machine"]["device"], "host")
        self.assertFalse(report["interrupted"])
        rows = {row["mesh"]: row for row in report["rows"]}
        self.assertEqual(list(rows), ["box-10k-natural", "box-10k-random"])
        faces = 19 * 20 * 25 * 2 + 20 * 20 * 24
        words = {"spmv": (3, 1), "spmv_unsymmetric": (3, 2), "integration": (2, 1), "linear_upwind": (7, 5)}
        for row in rows.values():
            self.assertEqual((row["cells"], row["faces"]), (10000, faces))
            self.assertEqual(row["bytes"], {key: 8 * (c * 10000 + (f + 1) * faces) for key, (c, f) in words.items()})
            strategies = row["strategies"]
            self.assertEqual(list(strategies), ["serial", "diagonal", "tiles", "slices", "gather", "colours", "atomics",
                                                "auto"])
            for name, s in strategies.items():
                if name != "auto":
                    self.assertEqual(s["strategy"], name)
                self.assertGreater(s["set_up_seconds"], 0)
                self.assertEqual(list(s["operators"]), list(words))
                for key, measured in s["operators"].items():
                    self.assertGreater(measured["speed_up"], 0)
                    plain = row["plain"][key]["seconds"]
                    self.assertAlmostEqual(plain / measured["seconds"] / measured["speed_up"], 1, delta=1e-9)
                    self.assertLess(measured["difference"], 1e-12)
            self.assertEqual(list(row["ablations"]), ["no_choice", "fixed_blocks", "in_place"])
            self.assertLessEqual(row["ablations"]["fixed_blocks"]["most_cells"], 256)
        self.assertEqual(report["summary"]["integration"]["paper"]["mean"], 10.22)
        self.refused("bench", "mesh-paper", "--only", "box-10", words=["'box-10'", "'box-10k'"])
        self.refused("bench", "mesh-paper", "--device", "emulated", words=["host", "GPU"])

    def test_bench_multigpu_paper_is_newton_on_this_device(self):
        self.refused("bench", "multigpu-paper", "--only", "16", words=["'16'", "'16k'"])
        out = self.good("bench", "multigpu-paper", "--only", "16k", "--json", "-", "--device", "host")
        row, = json.loads(out)["rows"]
        self.assertEqual(row["unknowns"], 2 * 128 * 63)
        self.assertEqual([(m["solver"], m["precond"]) for m in row["methods"]],
                         [("bicgstab", "jacobi"), ("bicgstab", "dilu"), ("gmres", "ilu0")])
        for m in row["methods"]:
            run = m["device"]
            self.assertEqual(run["status"], "converged")
            self.assertLessEqual(run["residual"], 1e-8)
            self.assertEqual(len(run["after_step"]), run["steps"] + 1)
            self.assertEqual(sorted(run["after_step"]), run["after_step"])
            self.assertLess(run["assembly_share"], 0.5)
            self.assertIsNone(m["core"])

    def test_the_hec_paper(self):
        sizes = {"poisson3d": (30, 8), "spe10": (20, 10), "atmosmodd": (25, 6)}
        for name, (nx, ny) in sizes.items():
            self.write(name + ".mtx", matrix_text(nx * ny, five_points(nx, ny)))
        arguments = ["bench", "hec-paper", "--matrices", ".", "--device", "emulated", "--threads", "2", "--repeat", "2",
                     "--json", "r.json", "--markdown", "t.md"]
        out = self.good(*arguments)
        with open(self.path("t.md")) as f:
            text = f.read()
        self.assertEqual(out[:len(text)], text)
        report = self.json_of(self.path("r.json"))
        self.assertEqual(report["rules"], {"solver": "gmres", "restart": 20, "rhs": "random:1", "rtol": 1e-6,
                                           "max_iterations": 500, "max_iterations_one_core": 40, "repeat": 2})
        self.assertEqual({row["system"]: row["source"] for row in report["rows"]},
                         {"poisson3d": "file", "atmosmodd": "file", "spe10": "file", "spe10-2p": "missing"})
        self.assertIn("Missing: spe10-2p. SPE10 is made from spe10/spe10_model2_kx.txt.gz", text)
        self.assertIn("- poisson3d: not the paper's matrix: 240 rows", text)

        names = ["block-ilu:16", "block-ilu:128", "block-ilu:512", "block-ilu:16,ilut:%s", "block-ilu:128,ilut:%s",
                 "block-ilu:512,ilut:%s", "ras:256,1", "ras:%s,1"]
        own = {"poisson3d": ("7,0.1", "2048"), "atmosmodd": ("7,0.01", "2048"), "spe10": ("14,0.01", "1024")}
        paper = {"poisson3d": ["-", "-", "~8", "-", "-", "~3"],
                 "atmosmodd": ["20.61", "2.63", "7.79", "24.8", "7.2", "3.45"],
                 "spe10": ["92.8", "12.78", "7.25", "42.1", "11.8", "3.54"]}
        titles = {"poisson3d": "Table 1: ", "atmosmodd": "Table 2: ", "spe10": "Table 3: SPE10, one phase"}
        for row in report["rows"][:3]:
            name = row["system"]
            nx, ny = sizes[name]
            self.assertEqual((row["rows"], row["nnz"]), (nx * ny, len(five_points(nx, ny))))
            ilut, last = own[name]
            self.assertEqual([line["precond"] for line in row["lines"]],
                             [n % ilut if "ilut" in n else n % last if "%s" in n else n for n in names])
            for line in row["lines"]:
                one, all_cores, gpu = line["one_core"], line["all_cores"], line["gpu"]
                self.assertEqual((one["device"], one["threads"], len(one["each"])), ("host", 1, 1))
                self.assertEqual((all_cores["device"], all_cores["threads"], len(all_cores["each"])), ("host", 2, 2))
                self.assertEqual(gpu["device"], "emulated")
                self.assertEqual(all_cores["status"], "converged")
                self.assertLessEqual(all_cores["relative_residual"], 1e-6)
                if all_cores["iterations"] <= 40:  # the bits of one core are those of all
                    for key in ("status", "iterations", "relative_residual"):
                        self.assertEqual(one[key], all_cores[key])
                else:
                    self.assertEqual((one["status"], one["iterations"]), ("max_iterations", 40))
                whole = one["seconds"]["solve"] / one["iterations"] * all_cores["iterations"]
                self.assertAlmostEqual(line["speed_up"] / (whole / gpu["seconds"]["solve"]), 1)
                self.assertAlmostEqual(line["application_speed_up"] /
                                       (one["ms"]["application"] / gpu["ms"]["application"]), 1)
            first = row["lines"][0]
            table = text.split("\n## " + titles[name], 1)[1].split("\n## ", 1)[0]
            cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
            solves, applications = [line for line in cells if line[:2] == ["bilu", "16"]]
            self.assertEqual(solves[2:4], [str(first[key]["iterations"]) for key in ("all_cores", "gpu")])
            self.assertEqual(solves[5:7], ["%.4g" % first[key]["seconds"]["solve"] for key in ("all_cores", "gpu")])
            self.assertEqual(solves[7], "%.4g" % first["speed_up"])
            self.assertEqual(applications[2:5], ["%.4g" % first[key]["ms"]["application"]
                                                 for key in ("one_core", "all_cores", "gpu")])
            self.assertEqual(solves[8:] + applications[6:], paper[name])

    def test_the_hec_paper_without_a_gpu(self):
        self.write("atmosmodd.mtx", matrix_text(150, five_points(25, 6)))
        out = self.good("bench", "hec-paper", "--only", "atmosmodd", "--matrices", ".", "--device", "host", "--repeat",
                        "1", "--threads", "1", "--json", "r.json")
        self.assertIn(", no GPU.", out)
        line = self.json_of(self.path("r.json"))["rows"][0]["lines"][0]
        self.assertNotIn("gpu", line)
        self.assertIsNone(line["speed_up"])
        cells = next(text for text in out.splitlines() if text.startswith("| bilu ")).strip("|").split("|")
        self.assertEqual([cells[k].strip() for k in (3, 6, 7)], ["-", "-", "-"])

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_the_hec_papers_picture(self):
        self.write("atmosmodd.mtx", matrix_text(150, five_points(25, 6)))
        self.write("spe10.mtx", "nothing")
        arguments = ["bench", "hec-paper", "--only", "atmosmodd,spe10", "--matrices", ".", "--device", "emulated",
                     "--repeat", "1", "--threads", "1", "--plot", "out"]
        done = self.refused(*arguments, silent=False, words=["spe10.mtx:1", "not a Matrix Market file"])
        self.assertIn("spe10.mtx (unreadable)", done.stdout)
        self.assert_picture(self.path("out-speedups.png"))

    def test_json_alone_on_standard_output(self):
        self.write("cage13.mtx", matrix_text(20, unsymmetric(20)))
        report = json.loads(self.good("bench", "dilu-paper", "--only", "cage13", "--matrices", ".", "--device",
                                      "emulated", "--repeat", "1", "--threads", "1", "--json", "-"))
        self.assertEqual(report["machine"]["device"], "emulated")
        runs = report["rows"][0]["runs"]
        self.assertEqual((runs["dilu_levels"]["device"], runs["dilu_cpu"]["device"]), ("emulated", "host"))

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_figures(self):
        self.write("cage13.mtx", matrix_text(63, five_points(9, 7)))
        self.write("ASIC_320ks.mtx", matrix_text(30, poisson(30)))  # a row a level, on a logarithmic axis
        self.write("apache2.mtx", matrix_text(3, {(i, i): 1.0 for i in range(3)}))  # one level
        out = self.good("bench", "dilu-paper", "--only", "cage13,ASIC_320ks,apache2", "--matrices", self.folder,
                        "--device", "host", "--repeat", "1", "--threads", "1", "--plot", "out")
        for name in ("out-fig6.png", "out-fig7.png"):
            self.assertIn(name, out)
            self.assert_picture(self.path(name))

    def test_one_that_fails_stands_alone(self):
        zero = dict(unsymmetric(20))
        zero[0, 0] = 0.0
        self.write("apache2.mtx", "nothing")
        self.write("offshore.mtx", matrix_text(20, zero))
        done = self.refused("bench", "dilu-paper", "--only", "apache2,offshore", "--matrices", ".", "--device", "host",
                            "--repeat", "1", "--threads", "1", "--json", "r.json", silent=False,
                            words=["apache2.mtx:1", "not a Matrix Market file"])
        self.assertIn("apache2.mtx (unreadable)", done.stdout)
        self.assertIn("dilu: zero pivot in row 1", done.stdout)
        runs = self.json_of(self.path("r.json"))["rows"][1]["runs"]
        self.assertIn("zero pivot", runs["dilu_levels"]["error"])
        self.assertIn("status", runs["none"])

    def test_refusals(self):
        with mock.patch.dict(os.environ):
            os.environ.pop("KRILU_MATRICES", None)
            self.refused("bench", words=["NAME is required"])
            self.refused("bench", "dilu-papr", words=["unknown paper 'dilu-papr'", "'dilu-paper'"])
            self.refused("bench", "x", words=["unknown paper 'x'", "one of dilu-paper"])
            self.refused("bench", "dilu-paper", "--only", "cage31", words=["'cage31'", "'cage13'", "parabolic_fem"])
            self.refused("bench", "dilu-paper", "--matrices", "nowhere", words=["--matrices nowhere", "no such folder"])
            self.refused("bench", "dilu-paper", "--only", "apache2,cage13",
                         words=["nothing to measure", "KRILU_MATRICES",
                                "tools/fetch-matrices --to FOLDER apache2 cage13"])
            self.refused("bench", "dilu-paper", "--only", "cage13", "--matrices", ".", words=["in the folder ."])
            self.refused("bench", "dilu-paper", "--repeat", "0", words=["repeat"])
            self.refused("bench", "dilu-paper", "--device", "hots", words=["unknown device 'hots'", "'host'"])
            self.refused("bench", "hec-paper", "--only", "spe11", words=["'spe11'", "'spe10'", "poisson3d"])
            self.refused("bench", "hec-paper", "--only", "spe10,spe10-2p",
                         words=["nothing to measure", "spe10_model2_kx.txt.gz", "KRILU_MATRICES"])
            self.refused("bench", "hec-paper", "--only", "spe10", "--matrices", ".", words=["in the folder ."])
            os.environ["KRILU_MATRICES"] = self.path("gone")
            self.refused("bench", "dilu-paper", words=["KRILU_MATRICES is set to", "gone", "no such folder"])


class Looks(Case):
    def outputs(self):
        skewed = dict(unsymmetric(60))
        skewed[30, 30] = 0.0
        matrix = self.write("channel_p.mtx", matrix_text(60, skewed))
        yield self.good("solve", "gen:convdiff3d:12x12x12", "--explain", "--threads", "2")
        yield self.good("solve", matrix, "--explain", "-o", "x.mtx", "--json", "r.json")
        yield self.good("solve", "gen:poisson2d:12x12", "--norm", "openfoam", "--explain", "--threads", "2")
        yield self.good("solve", "gen:poisson2d:12x12", "--rtol", "1e-18", "--threads", "2", status=3)
        yield self.good("info", "gen:convdiff3d:30x30x30")
        yield self.good("info", matrix)
        yield self.good("compare", "gen:convdiff2d:12x12", "--precond", "dic,dilu,none", status=3)

    def test_lines_fit_80_columns_and_carry_no_codes_where_there_is_no_terminal(self):
        for out in self.outputs():
            self.assertNotIn("\033", out)
            self.assertNotIn("\r", out)
            for line in out.splitlines():
                self.assertLessEqual(len(line), 80, line)

    def test_the_chart_shows_the_curve(self):
        out = self.good("solve", "gen:poisson2d:30x30")
        rows = [line.split("|", 1)[1] for line in out.splitlines() if "|" in line and "*" in line]
        self.assertGreater(len(rows), 5)
        first = [row.index("*") for row in rows]
        self.assertEqual(first, sorted(first))  # downwards and to the right
        self.assertEqual(first[0], 0)

    def test_help(self):
        top = self.good("--help")
        for name in SUBCOMMANDS:
            self.assertIn("\n  %s " % name, top)
            out = self.good(name, "--help")
            for word in ("MATRIX", "--json", "--plot", "--threads"):
                self.assertIn(word, out)
        self.assertIn("\n  bench ", top)
        out = self.good("bench", "--help")
        for word in ("dilu-paper", "--json", "--markdown", "--plot", "--only", "\nExample: krilu bench dilu-paper"):
            self.assertIn(word, out)
        self.assertIn("--output", self.good("solve", "--help"))
        self.assertRegex(self.good("--version"), r"^krilu \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: command_test.py PATH_OF_KRILU [unittest arguments]")
    COMMAND = os.path.abspath(sys.argv.pop(1))
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    unittest.main()
