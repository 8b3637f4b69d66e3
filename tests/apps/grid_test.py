#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# krilu grid as a person or a script runs it: exit statuses, JSON against the grid that was written, files and pictures,
# shapes from files, refusals, a full disk and Ctrl-C. Argument 1: the command's path.
import json
import math
import os
import shutil
import signal
import subprocess
import time
import unittest

import krilu_command

QUALITY = {"smallest_jacobian", "folded_cells", "worst_angle", "mean_deviation", "wall_deviation",
           "wall_deviation_anywhere", "largest_aspect", "wall_spacing", "least_wall_spacing", "largest_wall_spacing",
           "largest_growth"}


def small(*arguments):
    """The command line of a small grid, where the arguments do not say another."""
    line = ["grid"] + list(arguments)
    for option, value in (("--size", "65x33"), ("--threads", "2")):
        if not any(word.split("=")[0] == option for word in line):
            line += [option, value]
    return line


def read_plot3d(path):
    """Rows of nodes, from the wall outwards: rows[j][i] = (x, y)."""
    with open(path) as f:
        words = f.read().split()
    ni, nj = int(words[0]), int(words[1])
    values = [float(word) for word in words[2:]]
    assert len(values) == 2 * ni * nj, (ni, nj, len(values))
    nodes = list(zip(values[:ni * nj], values[ni * nj:]))
    return [nodes[j * ni:(j + 1) * ni] for j in range(nj)]


def jacobians(rows):
    """Of the four corners of every cell: the area of the parallelogram of the two edges that meet there."""
    def cross(o, a, b):
        return (a[0] - o[0]) * (b[1] - o[1]) - (b[0] - o[0]) * (a[1] - o[1])
    for low, high in zip(rows, rows[1:]):
        for i in range(len(low) - 1):
            a, b, c, d = low[i], low[i + 1], high[i + 1], high[i]
            yield cross(a, b, d), cross(b, c, a), cross(c, d, b), cross(d, a, c)


def aspect_ratios(rows):
    for low, high in zip(rows, rows[1:]):
        for i in range(len(low) - 1):
            a, b, c, d = low[i], low[i + 1], high[i + 1], high[i]
            along = math.dist(a, b) + math.dist(d, c)
            across = math.dist(a, d) + math.dist(b, c)
            yield max(along, across) / min(along, across)


def naca_thickness(x, thickness):
    """Half of it, of the section with a closed trailing edge."""
    return 5 * thickness * (0.2969 * math.sqrt(x) - 0.1260 * x - 0.3516 * x**2 + 0.2843 * x**3 - 0.1036 * x**4)


def naca_side(n, thickness, sign):
    """From the trailing edge to the leading edge."""
    for k in range(n):
        x = (1 + math.cos(math.pi * k / (n - 1))) / 2
        yield x, sign * naca_thickness(x, thickness)


def selig(n=41, thickness=0.15):
    upper = list(naca_side(n, thickness, 1))
    lower = list(naca_side(n, thickness, -1))
    return upper + lower[::-1][1:]


def lednicer(n=41, thickness=0.15):
    sides = [list(naca_side(n, thickness, sign))[::-1] for sign in (1, -1)]
    return "A TITLE\n %d. %d.\n\n%s\n%s" % (n, n, lines(sides[0]), lines(sides[1]))


def circle(n=40):
    return [(5 + 2 * math.cos(2 * math.pi * k / n), 7 + 2 * math.sin(2 * math.pi * k / n)) for k in range(n)]


def lines(points):
    return "".join("%.12f %.12f\n" % p for p in points)


class Case(krilu_command.Case):
    def grid(self, *arguments, status=0):
        """The report and the nodes of a grid."""
        out = self.good(*small(*arguments, "-o", "g.xyz", "--json", "r.json"), status=status)
        return out, self.json_of(self.path("r.json")), read_plot3d(self.path("g.xyz"))

    def assert_quality_is_that_of(self, quality, rows):
        self.assertEqual(set(quality), QUALITY)
        corners = list(jacobians(rows))
        least = min(min(c) for c in corners)
        self.assertAlmostEqual(quality["smallest_jacobian"], least, delta=1e-6 * abs(least))
        self.assertEqual(quality["folded_cells"], sum(min(c) <= 0 for c in corners))
        self.assertAlmostEqual(quality["largest_aspect"] / max(aspect_ratios(rows)), 1, delta=1e-6)
        self.assertTrue(0 < quality["worst_angle"] <= 90, quality)
        self.assertTrue(0 <= quality["mean_deviation"] <= 90 - quality["worst_angle"], quality)
        self.assertLessEqual(quality["wall_deviation"], quality["wall_deviation_anywhere"])
        self.assertLessEqual(quality["least_wall_spacing"], quality["largest_wall_spacing"])
        self.assertGreater(quality["largest_growth"], 1)


class Grids(Case):
    def test_an_o_grid_and_its_whole_report(self):
        out, r, rows = self.grid()
        for words in ("naca:0012", "O, 65 x 33 nodes", "converged after", "folded cells    none", "g.xyz", "r.json"):
            self.assertIn(words, out)
        self.assertEqual((r["shape"], r["trailing_edge"], r["topology"], r["status"]),
                         ("naca:0012", "closed", "O", "converged"))
        self.assertEqual(r["size"], {"around": 65, "outward": 33, "wake": 0})
        self.assertEqual((r["asked"]["far_field"], r["asked"]["wall_spacing"], r["asked"]["control"]),
                         (20, 1e-3, "sorenson"))
        self.assertEqual(len(rows), 33)
        for row in rows:
            self.assertEqual(len(row), 65)
            self.assertEqual(row[0], row[-1])
        for x, y in rows[0]:
            self.assertTrue(-1e-9 <= x <= 1 + 1e-9, x)
            self.assertAlmostEqual(abs(y), naca_thickness(min(max(x, 0), 1), 0.12), delta=1e-4)
        self.assertEqual(rows[0][0], (1, 0))
        self.assertLess(rows[0][5][1], 0)  # the lower side first
        for node in rows[-1]:
            self.assertAlmostEqual(math.dist(node, (0.5, 0)), 20, delta=0.51)
        self.assertEqual(r["quality"]["folded_cells"], 0)
        self.assertGreater(r["quality"]["smallest_jacobian"], 0)
        self.assertEqual(r["quality"]["wall_spacing"], 1e-3)
        self.assert_quality_is_that_of(r["quality"], rows)
        spacing = [math.dist(a, b) for a, b in zip(rows[0], rows[1])]
        middle = spacing[12:25] + spacing[40:53]  # of both sides, away from both edges
        for value in middle:
            self.assertTrue(r["quality"]["least_wall_spacing"] - 1e-9 <= value <=
                            r["quality"]["largest_wall_spacing"] + 1e-9, value)
            self.assertAlmostEqual(value / 1e-3, 1, delta=0.1)

        history = r["history"]
        self.assertGreater(len(history), 1)
        self.assertEqual(history[0]["update"], 0)
        for u, v in zip(history, history[1:]):
            self.assertIn(v["update"] - u["update"], (0, 1))  # 0: another size, or the last solve
        self.assertLess(history[-1]["wall_spacing_error"], history[0]["wall_spacing_error"])
        newton = r["newton"]
        self.assertEqual([s["iteration"] for s in newton], list(range(len(newton))))
        for s, t in zip(newton, newton[1:]):
            self.assertLess(t["residual"], s["residual"])
            self.assertTrue(0 < t["length"] <= 1)
            self.assertGreaterEqual(t["inner_iterations"], 1)
        self.assertEqual(set(r["seconds"]), {"analyse", "residual", "jacobian", "factor", "linear", "other", "all"})
        for seconds in r["seconds"].values():
            self.assertTrue(0 <= seconds < 100, r["seconds"])
        self.assertIsInstance(r["notes"], list)
        self.assertTrue(r["device"])

    def test_a_c_grid(self):
        _, r, rows = self.grid("--topology", "C", "--size", "97x33", "--far-field", "10")
        self.assertEqual((r["topology"], r["status"]), ("C", "converged"))
        wake = r["size"]["wake"]
        self.assertTrue(1 <= wake < 48, wake)
        wall = rows[0]
        for i in range(wake + 1):
            self.assertEqual(wall[i], wall[96 - i])
        self.assertEqual(wall[wake], (1, 0))
        for i in range(wake):
            self.assertGreater(wall[i][0], wall[i + 1][0])
        self.assertLess(wall[wake + 2][1], 0)
        for x, y in wall[wake:97 - wake]:
            self.assertAlmostEqual(abs(y), naca_thickness(min(max(x, 0), 1), 0.12), delta=1e-4)
        self.assert_quality_is_that_of(r["quality"], rows)

    def test_what_is_asked_for_is_what_comes(self):
        for arguments, size, spacing, far in ((["--wall-spacing", "5e-3", "--far-field", "5"], (65, 33), 5e-3, 5),
                                              (["--size", "81x25", "--far-field", "8"], (81, 25), 1e-3, 8)):
            _, r, rows = self.grid(*arguments)
            self.assertEqual((len(rows[0]), len(rows)), size)
            self.assertAlmostEqual(math.dist(rows[0][size[0] // 4], rows[1][size[0] // 4]) / spacing, 1, delta=0.1)
            for node in rows[-1]:
                self.assertAlmostEqual(math.dist(node, (0.5, 0)), far, delta=0.51)

    def test_ways_to_solve_give_one_grid(self):
        _, _, first = self.grid()
        for arguments in (["--threads", "1"], ["--device", "emulated"], ["--jacobian", "finite-differences"],
                          ["--jacobian", "matrix-free"], ["--solver", "bicgstab", "--precond", "dilu"],
                          ["--forcing", "fixed:1e-3"], ["--forcing", "eisenstat-walker-1"], ["--line-search", "none"]):
            _, r, rows = self.grid(*arguments)
            self.assertEqual(r["status"], "converged", arguments)
            for a, b in zip(first, rows):
                for p, q in zip(a, b):
                    # Updates of the control terms end within a hundredth of the spacing asked for, on different paths.
                    self.assertLess(math.dist(p, q), 2e-3 * (1 + math.dist(p, (0.5, 0))), arguments)

    def test_threads_do_not_change_a_bit(self):
        self.assertEqual(self.grid("--threads", "1")[2], self.grid("--threads", "3")[2])

    def test_a_folded_grid_is_no_success(self):
        """A crescent is hollow, and hollow places want more than the equations alone."""
        around = [math.radians(20 + 320 * k / 59) for k in range(60)]
        points = [(math.cos(t), math.sin(t)) for t in around]
        points += [(0.6 * math.cos(t) + 0.15, 0.6 * math.sin(t)) for t in reversed(around)] + points[:1]
        shape = self.write("crescent.dat", lines(points))
        out, r, rows = self.grid("--shape", shape, "--control", "none", status=3)
        self.assertGreater(r["quality"]["folded_cells"], 0)
        self.assertNotEqual(r["status"], "converged")
        self.assertIn("folded after", out)
        self.assertLess(r["quality"]["smallest_jacobian"], 0)
        self.assertEqual(r["quality"]["folded_cells"], sum(min(c) <= 0 for c in jacobians(rows)))
        self.assertEqual((r["asked"]["control"], r["history"][-1]["update"]), ("none", 0))

    def test_an_open_trailing_edge(self):
        _, r, rows = self.grid("--trailing-edge", "open")
        self.assertEqual(r["trailing_edge"], "open")
        self.assertAlmostEqual(max(x for x, _ in rows[0]), 1, delta=1e-9)
        tail = [y for x, y in rows[0] if x > 1 - 1e-9]
        self.assertAlmostEqual(max(tail) - min(tail), 2 * 0.00126, delta=2e-5)

    def test_json_alone_on_standard_output(self):
        r = json.loads(self.good(*small("--json", "-")))
        self.assertEqual(r["status"], "converged")
        self.assertEqual(self.good(*small("--quiet")), "")

    def test_not_converged(self):
        out, r, rows = self.grid("--max-updates", "1", status=3)
        self.assertIn("not converged after 1 update", out)
        self.assertEqual(r["status"], "max_iterations")
        self.assertEqual((len(rows[0]), len(rows)), (65, 33))

    def test_lines_fit_80_columns_and_carry_no_codes_where_there_is_no_terminal(self):
        long = self.write("a-shape-with-a-long-name.dat", lines(selig()))
        for out in (self.grid()[0], self.good(*small("--topology", "C", "--size", "97x33", "--far-field", "10")),
                    self.grid("--max-updates", "1", status=3)[0],
                    self.good(*small("--shape", os.path.basename(long)))):
            self.assertNotIn("\033", out)
            self.assertNotIn("\r", out)
            for line in out.splitlines():
                self.assertLessEqual(len(line), 80, line)

    def test_help(self):
        self.assertIn("\n  grid ", self.good("--help"))
        out = self.good("grid", "--help")
        for word in ("--shape", "--topology", "--size", "--wall-spacing", "--far-field", "--control", "--forcing",
                     "--jacobian", "--precond", "--device", "--plot", "--json", "\nExamples:\n  krilu grid --shape"):
            self.assertIn(word, out)
        for line in out.splitlines():
            self.assertLessEqual(len(line), 80, line)


class Shapes(Case):
    def test_files_in_every_order_are_one_shape(self):
        first = self.grid("--shape", self.write("s.dat", "A TITLE\n" + lines(selig())))
        self.assertEqual(first[1]["status"], "converged")
        for name, text in (("plain.dat", lines(selig())), ("not-closed.dat", lines(selig()[:-1])),
                           ("turned.dat", lines(selig()[::-1])), ("lednicer.dat", lednicer()),
                           ("scaled.dat", lines([(3 + 10 * x, 10 * y - 4) for x, y in selig()]))):
            _, r, rows = self.grid("--shape", self.write(name, text))
            self.assertEqual(r["status"], "converged", name)
            for a, b in zip(first[2], rows):
                for p, q in zip(a, b):
                    self.assertLess(math.dist(p, q), 1e-4 * (1 + math.dist(p, (0.5, 0))), name)

    def test_a_circle(self):
        _, r, rows = self.grid("--shape", self.write("circle.dat", lines(circle())), "--far-field", "10")
        self.assertEqual(r["status"], "converged")
        for node in rows[0]:
            self.assertAlmostEqual(math.dist(node, (0.5, 0)), 0.5, delta=1e-3)
        self.assertGreater(r["quality"]["worst_angle"], 80)

    def test_a_polygon_with_corners(self):
        square = [(0, 0), (1, 0), (1, 1), (0, 1)]
        text = lines([(a[0] + (b[0] - a[0]) * k / 8, a[1] + (b[1] - a[1]) * k / 8)
                      for a, b in zip(square, square[1:] + square[:1]) for k in range(8)] + square[:1])
        _, r, rows = self.grid("--shape", self.write("square.dat", text), "--wall-spacing", "5e-3")
        self.assertEqual(r["status"], "converged")
        middle = [min(y for _, y in rows[0]), max(y for _, y in rows[0])]
        for x in (0, 1):
            for y in middle:
                self.assertLess(min(math.dist(node, (x, y)) for node in rows[0]), 1e-9)

    def test_refused_shapes(self):
        def refused(text, *words):
            path = self.write("bad.dat", text)
            self.refused(*small("--shape", path), words=[path] + list(words))
        points = selig(21)
        refused(lines(points[:10] + [points[12], points[11]] + points[13:30] + [points[4]] + points[31:]),
                "crosses or touches itself", "line")
        refused(lines([(0, 0), (1, 1), (1, 0), (0, 1), (0, 0)]), "crosses or touches itself")
        refused(lines(points[:21]), "the curve is open", "line")
        refused(lines(points[:6] + points[5:]), ":7: the point", "line 6 again")
        refused(lines([(0, 0), (1, 0)]), "2 points", "three")
        refused(lines([(0, 0)] * 9), "")
        refused("", "")
        refused("a title and nothing else\n", "no points")
        refused(lines(points[:5]) + "0.5 half\n" + lines(points[5:]), ":6", "'half'", "number")
        refused(lines(points[:5]) + "text here\n" + lines(points[5:]), ":6", "'text'", "number")
        refused(lines(points[:5]) + "0.5\n" + lines(points[5:]), ":6", "one number")
        refused(lines(points[:5]) + "nan 0\n" + lines(points[5:]), ":6")
        refused(lines(points[:5]) + "1e999 0\n" + lines(points[5:]), ":6")
        refused(lines([(0, 0), (0.5, 0), (1, 0), (0.7, 0), (0, 0)]), "no area")
        refused(lednicer().replace(" 41. 41.", " 41. 40."), "41", "40")
        refused(b"\x00\x01\x02\xff" * 50, "")
        self.refused(*small("--shape", "nowhere.dat"), words=["nowhere.dat", "no such file"])
        self.refused(*small("--shape", self.folder), words=[self.folder])
        self.refused(*small("--shape", ""), words=["shape"])
        for name in ("naca:12", "naca:00000", "naca:wxyz", "naca:0000", "naca:4012", "naca0012", "naca:"):
            self.refused(*small("--shape", name), words=[name, "naca"])


class Files(Case):
    def test_several_at_once(self):
        out = self.good(*small("-o", "a.xyz", "-o", "b.p3d", "--output", "c.fmt"))
        rows = read_plot3d(self.path("a.xyz"))
        for name in ("b.p3d", "c.fmt"):
            self.assertIn(name, out)
            self.assertEqual(read_plot3d(self.path(name)), rows)
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.xyz", "b.p3d", "c.fmt"])

    def test_cgns(self):
        """Written, and approved of by cgnscheck where that is installed; or refused with the remedy."""
        done = self.run_command(*small("-o", "g.cgns"))
        if done.returncode == 2:
            self.assertIn("krilu was built without CGNS; install libcgns-dev", done.stderr)
            self.assertEqual(done.stdout, "")
            self.skipTest("built without CGNS")
        self.good(*small("--topology", "C", "--size", "97x33", "--far-field", "10", "-o", "c.cgns"))
        for name in ("g.cgns", "c.cgns"):
            self.assertGreater(os.path.getsize(self.path(name)), 16 * 65 * 33)
            if shutil.which("cgnscheck"):
                check = subprocess.run(["cgnscheck", "-w3", self.path(name)], stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, universal_newlines=True, timeout=60)
                self.assertEqual(check.returncode, 0, check.stdout)
                self.assertIn("checking complete", check.stdout)
                self.assertNotIn("WARNING", check.stdout)
                self.assertNotIn("ERROR", check.stdout)

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_pictures(self):
        for name in ("p.png", "p.svg"):
            self.assertIn(name, self.good(*small("--plot", name)))
            data = self.assert_picture(self.path(name))
        for words in (b"naca:0012, O grid, 65 x 33", b"whole grid", b"nose", b"tail"):
            self.assertIn(words, data)
        self.assertLess(len(data), 2000000)
        shape = self.write("it's 100%_{odd}.dat", lines(selig()))
        self.good(*small("--shape", shape, "--plot", "q.svg"))
        self.assertIn(b"100%_{odd}.dat, O grid", self.assert_picture(self.path("q.svg")))

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_the_name_of_a_picture_is_no_command(self):
        name = "|touch made;.png"
        self.good(*small("--plot", name))
        self.assertEqual(os.listdir(self.folder), [name])
        self.refused(*small("--plot", "a\n!touch made\n.png"), words=["one line"])
        self.assertEqual(os.listdir(self.folder), [name])

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_nor_is_what_a_title_says(self):
        shape = self.write("a\n!touch made\n", lines(selig()))
        self.good(*small("--shape", shape, "--plot", "p.svg"))
        self.assert_picture(self.path("p.svg"))
        self.assertFalse(os.path.exists(self.path("made")))

    def test_refused_before_any_work(self):
        huge = ["grid", "--size", "8193x8193"]
        for name in ("g.vtk", "g", "g.cgns.gz", "cgns"):
            self.refused(*(huge + ["-o", name]), words=[name, ".cgns", ".xyz", "Plot3D"])
        self.refused(*(huge + ["-o", "good.xyz", "-o", "g.vtk"]), words=["g.vtk"])
        self.refused(*(huge + ["-o", "nowhere/g.xyz"]), words=["nowhere/g.xyz", "no folder nowhere"])
        os.mkdir(self.path("d.xyz"))
        self.refused(*(huge + ["-o", "d.xyz"]), words=["d.xyz", "folder"])
        self.refused(*(huge + ["--plot", "p.jpg"]), words=[".png or .svg"])
        done = self.run_command(*(huge + ["--plot", "p.png"]), env={"PATH": self.folder})
        self.assertEqual(done.returncode, 2)
        self.assertIn("gnuplot, which is not installed", done.stderr)
        self.assertEqual(os.listdir(self.folder), ["d.xyz"])

    @unittest.skipUnless(os.path.exists(krilu_command.FULL), "there is no /dev/full")
    def test_a_full_disk(self):
        os.symlink(krilu_command.FULL, self.path("full.xyz"))
        done = self.refused(*small("-o", "full.xyz", "-o", "good.xyz", "--json", "r.json"), silent=False,
                            words=["could not write full.xyz", "No space left"])
        self.assertIn("converged after", done.stdout)
        self.assertEqual(len(read_plot3d(self.path("good.xyz"))), 33)
        self.assertEqual(self.json_of(self.path("r.json"))["status"], "converged")
        self.refused(*small("--json", krilu_command.FULL), silent=False, words=["could not write /dev/full"])


class Refusals(Case):
    def test_sizes(self):
        for size in ("65", "65x", "x33", "65x33x2", "65*33", "many", "6.5x33", "99999999999x33", "", "-65x33x"):
            self.refused("grid", "--size", size, words=["--size"])
        for size in ("1x1", "0x0", "65x1", "2x33", "-65x33", "65x-33"):
            self.refused("grid", "--size=" + size, words=["nodes"])
        self.refused("grid", "--size", "2000000x2000000", words=["nodes"])

    def test_lengths(self):
        for spacing in ("0", "-1e-3", "nan", "inf", "100"):
            self.refused(*small("--wall-spacing=" + spacing), words=["spacing"])
        for far in ("0", "-5", "nan", "inf", "0.1"):
            self.refused(*small("--far-field=" + far), words=["far"])

    def test_names(self):
        for option, bad, good in (("--topology", "H", "O, C"), ("--control", "sorensen", "'sorenson'"),
                                  ("--trailing-edge", "opn", "'open'"), ("--forcing", "fixed:2", "fixed"),
                                  ("--forcing", "eisenstat-walker-3", "eisenstat-walker-2"),
                                  ("--jacobian", "onw", "'own'"),
                                  ("--line-search", "back", "backtracking"), ("--solver", "gmre", "'gmres'"),
                                  ("--precond", "ilu00", "'ilu0'"), ("--device", "hots", "'host'")):
            with self.subTest(option):
                self.refused(*small(option, bad), words=[bad, good])

    def test_numbers(self):
        for option, bad in (("--max-updates", "-1"), ("--tolerance", "-1"), ("--tolerance", "nan"),
                            ("--max-steps", "-1"), ("--max-iters", "-3"), ("--restart", "0"), ("--threads", "-2"),
                            ("--threads", "two"), ("--far-field", "far")):
            with self.subTest(option):
                self.refused(*small("%s=%s" % (option, bad)), words=[])

    def test_options_that_are_none(self):
        self.refused("grid", "--shap", "x", words=["'--shap'", "'--shape'"])
        self.refused("grid", "naca:0012", words=["krilu grid --help"])


class Interrupt(Case):
    def test_ctrl_c_leaves_what_there_is(self):
        for delay in (1, 3, 9):
            process = subprocess.Popen([krilu_command.COMMAND, "grid", "--size", "1025x513", "--threads", "1", "-o",
                                        "g.xyz", "--json", "r.json"],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                                       cwd=self.folder)
            time.sleep(delay)
            self.assertIsNone(process.poll(), "it was to take longer")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=110)
            self.assertEqual(process.returncode, 3, out + err)
            if "before there was a result" not in err:
                break
        else:
            self.fail("the grid was never begun")
        self.assertEqual(err, "")
        self.assertIn("interrupted after", out)
        self.assertEqual(self.json_of(self.path("r.json"))["status"], "interrupted")
        if "no grid was there yet" in out:
            self.assertFalse(os.path.exists(self.path("g.xyz")))
        else:
            self.assertEqual(len(read_plot3d(self.path("g.xyz"))), 513)


if __name__ == "__main__":
    krilu_command.main()
