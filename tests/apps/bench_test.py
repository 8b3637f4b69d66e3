#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# krilu bench as a person or a script runs it: each paper's tables, figures and report, and what is refused. Argument 1:
# the command's path.
import gzip
import json
import os
import shutil
import unittest
from unittest import mock

import krilu_command
from krilu_command import Case, five_points, matrix_text, poisson, unsymmetric


def rows_in_levels(n, entries):
    """Of the lower triangle: a row's level is one above the highest of those it depends on."""
    level = [0] * n
    for i, j in sorted(entries):
        if j < i:
            level[i] = max(level[i], level[j] + 1)
    return [level.count(l) for l in range(max(level) + 1)]


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


if __name__ == "__main__":
    krilu_command.main()
