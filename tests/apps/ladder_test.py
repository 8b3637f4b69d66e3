#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The ladder of the command krilu as a person meets it: rungs on the terminal and in the report, the command that goes
# straight to the one that worked, --explain, and systems that cannot be solved. Argument 1: the command's path.
import json
import math
import os
import shlex

import krilu_command
from krilu_command import Case, matrix_text, read_vector, relative_residual


def saddle_point(n):
    """2 + 1/(i+1) on the diagonal, -1 beside it, and for every third pair of rows a constraint without a diagonal."""
    entries = {}
    for i in range(n):
        entries[i, i] = 2.0 + 1.0 / (i + 1)
        if i > 0:
            entries[i, i - 1] = -1.0
        if i + 1 < n:
            entries[i, i + 1] = -1.0
    for c in range(n // 3):
        for column, value in ((3 * c, 1.0), (3 * c + 1, -2.0)):
            entries[n + c, column] = value
            entries[column, n + c] = value
    return n + n // 3, entries


def swirl(n):
    """Convection far beyond what the mesh resolves, against the row order: DILU's recurrences grow."""
    entries = {}
    for i in range(n * n):
        entries[i, i] = 4.0
        for j, inside in ((i - n, i >= n), (i - 1, i % n > 0), (i + 1, i % n < n - 1), (i + n, i < n * (n - 1))):
            if inside:
                entries[i, j] = 9.0 if j < i else -10.0
    return n * n, entries


near_singular = ("since the preconditioner's solves are unstable or the matrix is close to singular; "
                 "try --precond ilut --scaling both")


class Ladder(Case):
    def solve(self, *arguments, status=0):
        return self.good("solve", *arguments, "--rhs", "ones", "--threads", "1", "--device", "host", status=status)

    def report(self, *arguments, status=0):
        return json.loads(self.solve(*arguments, "--json", "-", status=status))

    def test_rungs_are_reported_and_the_last_line_goes_straight_to_the_one_that_worked(self):
        rows, entries = swirl(30)
        matrix = self.write("swirl.mtx", matrix_text(rows, entries))
        out = self.solve(matrix, "-o", "x.mtx", "--json", "r.json")
        self.assertLessEqual(relative_residual(entries, read_vector(self.path("x.mtx")), [1.0] * rows), 1e-8)
        with open(self.path("r.json")) as f:
            r = json.load(f)
        self.assertEqual(r["status"], "converged")
        self.assertGreater(len(r["rungs"]), 1)
        self.assertEqual(r["rungs"][0]["arguments"], "--solver bicgstab --precond dilu")
        for rung in r["rungs"]:
            self.assertEqual(set(rung), {"what", "arguments", "status", "iterations", "relative_residual", "seconds",
                                         "why_left"})
            self.assertIn("rung", out)
        for rung in r["rungs"][:-1]:
            self.assertNotEqual(rung["why_left"], "")
        self.assertEqual(r["rungs"][-1]["why_left"], "")
        self.assertEqual(sum(rung["iterations"] for rung in r["rungs"]), r["iterations"])
        self.assertLessEqual(sum(rung["seconds"] for rung in r["rungs"]), r["seconds"]["solve"] + 0.05)
        # The last words of the output are a command.
        words = " ".join(out.split())
        command = shlex.split(words[words.rindex("krilu solve"):])
        self.assertEqual(command[:3], ["krilu", "solve", matrix])
        for name, value in (("--rhs", "ones"), ("--threads", "1"), ("-o", "x.mtx"), ("--json", "r.json")):
            self.assertEqual(command[command.index(name) + 1], value)
        for name in ("--rtol", "--max-iters", "--x0", "--plot"):
            self.assertNotIn(name, command)
        os.remove(self.path("r.json"))
        self.good(*command[1:])
        with open(self.path("r.json")) as f:
            straight = json.load(f)
        self.assertEqual(straight["status"], "converged")
        self.assertEqual(straight["rungs"], [])
        self.assertEqual((straight["solver"], straight["precond"]), (r["solver"], r["precond"]))

    def test_a_matrix_that_lu_finds_singular_is_said_to_be(self):
        # Rows 1 and 3 are the same; no row or column is structurally to blame.
        at = [(0, 1), (0, 2), (1, 0), (1, 3), (2, 1), (2, 2), (3, 1), (3, 4), (4, 2), (4, 5), (5, 0), (5, 5)]
        matrix = self.write("twins.mtx", matrix_text(6, {place: 1.0 for place in at}))
        rhs = self.write("b.txt", "1\n2\n3\n4\n5\n6\n")
        done = self.run_command("solve", matrix, "--rhs", rhs, "--threads", "1", "--device", "host", "--json", "-")
        report = json.loads(done.stdout)
        if not any("with lu" in rung["what"] for rung in report["rungs"]):
            self.skipTest("krilu was built without SuperLU")
        self.assertEqual((done.returncode, report["status"]), (3, "stagnated"))
        self.assertIn("the matrix is singular", report["notes"][-1])

    def test_the_last_line_is_what_a_shell_takes(self):
        rows, entries = swirl(30)
        matrix = self.write("a b's.mtx", matrix_text(rows, entries))
        words = " ".join(self.solve(matrix, "--rtol", "1e-9", "--max-iters", "9999").split())
        command = shlex.split(words[words.rindex("krilu solve"):])
        self.assertEqual(command[:3], ["krilu", "solve", matrix])
        self.assertEqual(command[command.index("--rtol") + 1], "1e-09")
        self.assertEqual(command[command.index("--max-iters") + 1], "9999")
        self.good(*command[1:])

    def test_easy_systems_say_nothing_of_ladders(self):
        out = self.solve("gen:convdiff2d:20x20")
        self.assertNotIn("rung", out)
        self.assertNotIn("next time", out)
        r = self.report("gen:convdiff2d:20x20")
        self.assertEqual([g["arguments"] for g in r["rungs"]], ["--solver bicgstab --precond dilu"])
        self.assertEqual(self.report("gen:convdiff2d:20x20", "--solver", "bicgstab")["rungs"], [])

    def test_zeros_on_the_diagonal_begin_with_the_matching(self):
        rows, entries = saddle_point(300)
        matrix = self.write("saddle.mtx", matrix_text(rows, entries))
        r = self.report(matrix)
        self.assertEqual(r["status"], "converged")
        self.assertIn("scaling matching", r["rungs"][0]["what"])
        out = self.solve(matrix, "--explain")
        self.assertIn("scaling matching", out)
        self.assertNotIn("converged", out)
        self.assertNotIn("true residual", out)

    def test_explain_does_not_solve(self):
        out = self.solve("gen:poisson2d:9x9", "--explain", "-o", "x.mtx")
        self.assertIn("solver cg: the matrix is symmetric", out)
        self.assertIn("where that does not arrive: gmres(50) with ilut", out)
        self.assertIn("x.mtx is not written: with --explain nothing is solved", out)
        self.assertFalse(os.path.exists(self.path("x.mtx")))
        self.assertEqual(self.solve("gen:poisson2d:9x9", "--explain", "--quiet"), "")

    def test_a_structurally_singular_matrix(self):
        rows, entries = swirl(12)
        for i in (40, 41, 42):  # three rows on two columns
            entries = {at: v for at, v in entries.items() if at[0] != i}
            entries[i, 7] = float(i)
            entries[i, 90] = 1.0
        matrix = self.write("singular.mtx", matrix_text(rows, entries))
        out = self.solve(matrix, "-o", "x.mtx", status=3)
        self.assertIn("not converged", out)
        self.assertIn("structurally singular: 1 row (4", " ".join(out.split()))
        x = read_vector(self.path("x.mtx"))
        self.assertTrue(all(math.isfinite(v) for v in x))
        r = self.report(matrix, status=3)
        self.assertEqual(r["status"], "stagnated")
        self.assertAlmostEqual(r["relative_residual"], relative_residual(entries, x, [1.0] * rows), delta=1e-3)
        self.assertLessEqual(r["relative_residual"], 1.0)

    def test_a_numerically_singular_matrix(self):
        rows, entries = swirl(10)
        for j in range(rows):  # row 30 is row 31 twice
            entries.pop((29, j), None)
            if (30, j) in entries:
                entries[29, j] = 2 * entries[30, j]
        r = self.report(self.write("twice.mtx", matrix_text(rows, entries)), status=3)
        self.assertIn(r["status"], ("stagnated", "max_iterations"))
        self.assertTrue(any(note.startswith("not solved") for note in r["notes"]), r["notes"])

    def test_a_preconditioner_that_is_unstable(self):
        side, entries = 40, {}
        for i in range(side):
            for j in range(side):
                entries[i * side + j, i * side + j] = 4
                for to, inside in (((i + 1) * side + j, i + 1 < side), (i * side + j + 1, j + 1 < side)):
                    if inside:  # a flow a hundred times as strong as diffusion
                        entries[i * side + j, to], entries[to, i * side + j] = 99, -101
        matrix = self.write("flow.mtx", matrix_text(side * side, entries))
        out = self.solve(matrix, "--solver", "gmres", "--precond", "dilu", status=3)
        words = " ".join(out.split())
        self.assertIn("the basis grows no further", words)
        self.assertRegex(words, near_singular)
        self.report(matrix, status=0)

    def test_a_basis_that_grows_no_further(self):
        # The right-hand side becomes zero, and nothing is rounded on the way.
        matrix = self.write("ones.mtx", matrix_text(2, {(i, j): 1.0 for i in range(2) for j in range(2)}))
        rhs = self.write("b.txt", "1\n-1\n")
        done = self.run_command("solve", matrix, "--rhs", rhs, "--device", "host",
                                "--solver", "gmres", "--precond", "none")
        self.assertEqual(done.returncode, 3)
        words = " ".join(done.stdout.split())
        self.assertRegex(words, r"broke down after \d+ iterations, twice: the basis grows no further, since")
        self.assertRegex(words, near_singular)

    def test_a_matrix_that_is_close_to_singular(self):
        n = 12  # Hilbert's matrix, of condition 1e16, and a right-hand side that asks for a large x
        entries = {(i, j): 1 / (i + j + 1) for i in range(n) for j in range(n)}
        matrix = self.write("hilbert.mtx", matrix_text(n, entries))
        rhs = self.write("b.txt", "".join(f"{(-1) ** i * (1 + i % 3)}\n" for i in range(n)))
        done = self.run_command("solve", matrix, "--rhs", rhs, "--threads", "1", "--device", "host",
                                "--solver", "gmres", "--precond", "none")
        self.assertEqual(done.returncode, 3)
        self.assertRegex(" ".join(done.stdout.split()), near_singular)

    def test_options_of_rungs_are_options_of_the_command(self):
        rows, entries = saddle_point(90)
        matrix = self.write("saddle.mtx", matrix_text(rows, entries))
        for scaling in ("matching",):
            r = self.report(matrix, "--solver", "gmres", "--precond", "ilut:20,0.001", "--scaling", scaling, "--ordering",
                            "rcm")
            self.assertEqual((r["status"], r["asked"]["scaling"]), ("converged", scaling))
        lu = self.run_command("solve", matrix, "--precond", "lu", "--json", "-")
        if "without SuperLU" not in lu.stderr:
            self.assertEqual(lu.returncode, 0, lu.stderr)
            self.assertEqual(json.loads(lu.stdout)["precond"], "lu")


if __name__ == "__main__":
    krilu_command.main()
