#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""krilu solve and krilu grid over ranks, as threads of one process and under mpirun: answers are those of one rank, reports say what
each rank had, and a rank that fails, or is killed, ends all of them with a sentence and a status.

usage: ranks_test.py KRILU [MPIRUN]"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import open_mpi

KRILU = sys.argv[1]
MPIRUN = sys.argv[2] if len(sys.argv) > 2 else None
MATRIX = "gen:convdiff2d:40x30"
METHOD = ["--solver", "bicgstab", "--precond", "jacobi", "--rtol", "1e-10", "--device", "host"]


def command(ranks, arguments):
    """mpirun -np for positive numbers, --ranks for negative ones, the command alone for 0."""
    if ranks > 0:
        return [MPIRUN, "-np", str(ranks), KRILU, *arguments]
    return [KRILU, *arguments, *(["--ranks", str(-ranks)] if ranks < 0 else [])]


def run(ranks, *arguments):
    done = subprocess.run(command(ranks, arguments), capture_output=True, text=True, timeout=120,
                          env=open_mpi.environment())
    return done.returncode, done.stdout, done.stderr


def numbers(path):
    with open(path) as file:
        lines = [line for line in file if not line.startswith("%")]
    return [float(line) for line in lines[1:]]


def ways():
    return (-1, -2, -3) + ((1, 2, 3) if MPIRUN else ())


class Ranks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.x = os.path.join(self.folder.name, "x.mtx")

    def test_answers_are_those_of_one_rank(self):
        status, out, err = run(0, "solve", MATRIX, *METHOD, "-o", self.x, "--quiet")
        self.assertEqual(status, 0, err)
        alone = numbers(self.x)
        for partition in ("blocks", "metis", "auto"):
            for ranks in ways():
                status, out, err = run(ranks, "solve", MATRIX, *METHOD, "-o", self.x, "--json", "-", "--partition",
                                       partition)
                self.assertEqual(status, 0, err)
                report = json.loads(out)
                self.assertEqual(report["status"], "converged")
                self.assertLessEqual(report["relative_residual"], 1e-10)
                self.assertEqual(report["matrix"]["rows"], 1200)
                self.assertEqual(len(report["ranks"]), abs(ranks))
                self.assertEqual(sum(r["rows"] for r in report["ranks"]), 1200)
                self.assertEqual(sum(r["nonzeros"] for r in report["ranks"]), report["matrix"]["nnz"])
                if abs(ranks) > 1:
                    self.assertTrue(all(r["halo"] > 0 for r in report["ranks"]), report["ranks"])
                together = numbers(self.x)
                self.assertLess(max(abs(a - b) for a, b in zip(alone, together)), 1e-7 * max(map(abs, alone)))

    def test_a_file_in_no_helpful_order_is_cut_by_metis(self):
        # A path of 600 nodes whose numbers jump.
        n = 600
        place = [(k * 331) % n for k in range(n)]
        entries = [(place[k], place[k], 4.0) for k in range(n)]
        for k in range(n - 1):
            entries += [(place[k], place[k + 1], -1.0), (place[k + 1], place[k], -1.5)]
        path = os.path.join(self.folder.name, "path.mtx")
        with open(path, "w") as file:
            file.write(f"%%MatrixMarket matrix coordinate real general\n{n} {n} {len(entries)}\n")
            file.writelines(f"{i + 1} {j + 1} {v}\n" for i, j, v in entries)
        status, out, err = run(-2, "solve", path, *METHOD, "--json", "-")
        self.assertEqual(status, 0, err)
        report = json.loads(out)
        self.assertIn("metis", " ".join(report["notes"]))
        self.assertLess(max(r["halo"] for r in report["ranks"]), 20)

    def test_the_table_shows_the_ranks(self):
        status, out, err = run(-3, "solve", MATRIX, *METHOD)
        self.assertEqual(status, 0, err)
        self.assertIn("exchange s", out)
        self.assertIn("rows of the ranks", out)

    def test_ras_reaches_into_other_ranks(self):
        _, one, _ = run(-1, "solve", MATRIX, "--solver", "bicgstab", "--precond", "ras:1,2", "--device", "host", "--json", "-")
        status, four, err = run(-4, "solve", MATRIX, "--solver", "bicgstab", "--precond", "ras:1,2", "--device", "host", "--json",
                                "-")
        self.assertEqual(status, 0, err)
        self.assertLessEqual(json.loads(four)["iterations"], 1.3 * json.loads(one)["iterations"] + 1)

    def test_a_grid_is_that_of_one_rank(self):
        grid = ["grid", "--size", "65x33", "--wall-spacing", "1e-2", "--control", "none", "--device", "host", "-o",
                self.x[:-4] + ".xyz"]
        status, out, err = run(0, *grid, "--json", "-")
        self.assertEqual(status, 0, err)
        alone = json.loads(out)
        with open(grid[-1]) as file:
            nodes = [float(word) for word in file.read().split()]
        for ranks in ways():
            os.unlink(grid[-1])
            status, out, err = run(ranks, *grid, "--json", "-")
            self.assertEqual(status, 0, err)
            report = json.loads(out)
            self.assertEqual(report["status"], "converged")
            self.assertEqual(len(report["history"]), len(alone["history"]))
            self.assertIn("%d rank" % abs(ranks), report["device"])
            with open(grid[-1]) as file:
                for one, many in zip(nodes, (float(word) for word in file.read().split()), strict=True):
                    self.assertAlmostEqual(one, many, delta=1e-6)
        status, out, err = run(-2, "grid", "--size", "65x33", "--shape", "naca:9999999")
        self.assertEqual(status, 2)
        self.assertEqual(err.count("krilu:"), 1, err)

    def test_what_is_wrong_is_said_once_with_status_2(self):
        cases = (("solve", os.path.join(self.folder.name, "none.mtx")), ("solve", MATRIX, "--precond", "dillu"),
                 ("solve", MATRIX, "--partition", "mettis"), ("solve", MATRIX, "--explain"),
                 ("solve", MATRIX, "--solver", "bicgstab", "--precond", "lu"),
                 ("solve", MATRIX, "--rhs", os.path.join(self.folder.name, "b.mtx")))
        for arguments in cases:
            for ranks in (-2, 2) if MPIRUN else (-2,):
                status, out, err = run(ranks, *arguments)
                self.assertEqual(status, 2, err)
                self.assertEqual(err.count("krilu: "), 1, err)
        status, _, err = run(0, "solve", MATRIX, "--device", "cuda:3-1")
        self.assertEqual(status, 2)
        self.assertIn("cuda:0-3", err)
        status, _, err = run(-3, "solve", MATRIX, "--device", "cuda:0-1")
        self.assertEqual(status, 2)
        self.assertIn("--ranks", err)

    def test_not_converged_is_status_3_on_all(self):
        for ranks in (-2, 2) if MPIRUN else (-2,):
            status, out, err = run(ranks, "solve", MATRIX, *METHOD, "--max-iters", "3")
            self.assertEqual(status, 3, err)
            self.assertIn("3", out)

    @unittest.skipUnless(MPIRUN, "there is no mpirun here")
    def test_that_there_is_no_ladder_is_said_where_there_would_be_one(self):
        said = "over several ranks the first choice is all that is tried"
        for ranks in ways():
            for more in ([], ["--precision", "fp32"], ["--solver", "bicgstab"]):
                status, out, err = run(ranks, "solve", MATRIX, "--max-iters", "2", "--rtol", "1e-10", "--json", "-", *more)
                self.assertEqual(status, 3, out + err)
                notes = " ".join(json.loads(out)["notes"])
                self.assertEqual(said in notes, abs(ranks) > 1 and not more, notes)

    def test_outputs_are_looked_at_before_the_solve(self):
        for ranks in ways():
            status, out, err = run(ranks, "solve", "gen:poisson3d:1200x1200x1000", "-o", "nowhere/x.mtx")
            self.assertEqual((status, out), (2, ""))
            self.assertIn("no folder nowhere", err)

    def test_a_killed_rank_ends_all_within_seconds(self):
        long = ["solve", "gen:poisson2d:300x300", "--solver", "bicgstab", "--precond", "none", "--rtol", "0", "--max-iters",
                "100000000", "--device", "host", "--quiet"]
        started = subprocess.Popen(command(3, long), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=open_mpi.environment())
        self.addCleanup(started.kill)
        ranks = []
        deadline = time.monotonic() + 60
        while len(ranks) < 3 and time.monotonic() < deadline:
            time.sleep(0.2)
            listed = subprocess.run(["ps", "-o", "pid=,ppid=", "-A"], capture_output=True, text=True).stdout
            pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
            ranks = [pid for pid, parent in pairs if parent == started.pid]
        self.assertEqual(len(ranks), 3)
        time.sleep(1)
        os.kill(ranks[1], signal.SIGKILL)
        begun = time.monotonic()
        _, err = started.communicate(timeout=60)
        self.assertNotEqual(started.returncode, 0)
        self.assertLess(time.monotonic() - begun, 20)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
