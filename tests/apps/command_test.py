#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The command krilu as a person or a script runs it: exit statuses, JSON, pictures, and solutions checked against the
# matrix in Python. Argument 1: the command's path. Refusals stand in refusals_test.py, krilu bench in bench_test.py.
import gzip
import json
import math
import os
import shutil
import unittest

import krilu_command
from krilu_command import BANNER, Case, matrix_text, poisson, read_vector, relative_residual, unsymmetric, vector_text

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

    def test_rows_that_are_the_norm_of_b(self):
        entries = {(i, j): 2.0 if i == j else -1.0 for i in range(30) for j in range(30) if abs(i - j) < 2}
        entries[0, 0] = 1e20
        matrix, rhs = self.write("p.mtx", matrix_text(30, entries)), self.write("b.mtx", vector_text([2e20] + 29 * [1.0]))
        self.good("solve", matrix, "--rhs", rhs, "--precond", "jacobi", "--json", "r.json")
        self.assertIn("1 row (row 1) holds entries 5e+19 times", self.json_of(self.path("r.json"))["notes"][-1])
        self.good("solve", matrix, "--rhs", "ones", "--json", "r.json")
        self.assertEqual([n for n in self.json_of(self.path("r.json"))["notes"] if "times" in n], [])

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
    krilu_command.main()
