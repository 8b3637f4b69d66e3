#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What the command krilu says of bad files, names and numbers, of a full disk, and of Ctrl-C: a sentence, a status, and
# nothing lost. Argument 1: the command's path.
import gzip
import os
import signal
import subprocess
import time
import unittest

import krilu_command
from krilu_command import BANNER, FULL, Case, matrix_text, poisson, read_vector, unsymmetric, vector_text


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
        self.refused("solve", matrix, "--rhs", "b" * 300, words=["bbbb", "File name too long"])
        os.symlink("circle", self.path("circle"))
        self.refused("solve", matrix, "--rhs", self.path("circle"), words=["circle", "Too many levels"])

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
                subprocess.run([krilu_command.COMMAND, "solve", matrix, "--quiet", "-o", name], stdout=log, timeout=60,
                               check=True, cwd=self.folder)
                log.seek(0, os.SEEK_END)
                log.write("after\n")
            with open(self.path("log")) as log:
                self.assertEqual(log.read(), "before\n" + answer + "after\n")
        with open(self.path("log"), "w") as log:  # after the table
            subprocess.run([krilu_command.COMMAND, "solve", matrix, "-o", "/dev/stdout"], stdout=log, timeout=60,
                           check=True)
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
        many = ",".join(["none"] * 90)  # more than a buffer holds
        for arguments in (["solve"], ["info"], ["compare", "--precond", "none"], ["compare", "--precond", many],
                          ["solve", "--json", "-"]):
            with open(FULL, "w") as full:
                done = subprocess.run([krilu_command.COMMAND] + arguments + ["gen:poisson2d:9x9"], stdout=full,
                                      stderr=subprocess.PIPE, universal_newlines=True, timeout=60)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn("could not write", done.stderr)


class Interrupt(Case):
    endless = ["gen:poisson2d:150x150", "--solver", "gmres", "--restart", "2", "--precond", "none", "--rtol", "0",
               "--max-iters", "5000000", "--threads", "1"]

    def interrupt(self, *arguments, times=1):
        """Ctrl-C while it solves; later where it came before the solve had begun."""
        for delay in (0.5, 2, 8):
            process = subprocess.Popen([krilu_command.COMMAND] + list(arguments), stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, universal_newlines=True, cwd=self.folder)
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
            process = subprocess.Popen([krilu_command.COMMAND, "bench", "dilu-paper", "--matrices", ".", "--only",
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


if __name__ == "__main__":
    krilu_command.main()
