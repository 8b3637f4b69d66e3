#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Tests of bench/run-gpu without a GPU: the tables of a report, worked by hand, and of that report with each of its
# pieces missing or wrong in turn; and a run of made-up programs, one of which hangs.

import contextlib
import copy
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import time
import unittest
from unittest import mock

TOOL = pathlib.Path(__file__).resolve().parents[2] / "bench" / "run-gpu"


def load_tool():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("run_gpu", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


tool = load_tool()
SYSTEM = "gen:aniso3d:100x100x100"


def strategy(ms):
    return {"lower_ms": ms, "upper_ms": 2 * ms, "lower_called_ms": 2 * ms, "dilu_factor_ms": ms, "ilu0_factor_ms": ms,
            "dilu_apply_ms": 3 * ms}


def ours(system):
    solve = {"status": "converged", "iterations": 100, "ms_per_iteration": 0.25, "total_ms": 31.0,
             "solver": "bicgstab+dilu, block-multicolour, level-set"}
    of_each = {"bicgstab dilu natural": [100, 50, 60], "bicgstab dilu blocks": [110, 70],
               "cg dic natural": [80], "cg dic blocks": [84, 1]}
    return {"device": "a GPU", "systems": {system: {
        "rows": 1000, "nonzeros": 7000, "spmv": {"as_given": {"ms": 0.02, "TB_per_s": 2.0}},
        "natural": {"levels": 28, "level-set": strategy(0.8), "sync-free": strategy(0.5), "tiled": strategy(0.4)},
        "blocks": {"level-set": strategy(0.03)},
        "solve": {p: dict(solve, **({"iterations_of_each": of_each[p]} if p in of_each else {}))
                  for p in ("auto", "bicgstab dilu blocks", "bicgstab dilu natural", "bicgstab jacobi",
                            "cg dic natural", "cg dic blocks")}}}}


def peer():
    triangle = [{"stored": "whole matrix", "ms": 0.9}, {"stored": "triangle", "ms": 0.1, "note": "its result is wrong"}]
    solve = {"status": "converged", "converged": True, "iterations": 90, "ms_per_iteration": 2.5}
    return {"machine": {"gpu": "a GPU", "runtime": 13000, "cusparse": 12603, "cublas": 130100},
            "copy": {"kernel_gigabytes_per_second": 4000.0}, "systems": [{
                "matrix": "x", "rows": 1000, "nnz": 7000,
                "spmv": {"runs": [{"algorithm": "CSR_ALG1", "ms": 0.04}, {"algorithm": "SELL_ALG1", "ms": 0.03},
                                  {"algorithm": "CSR_ALG2", "ms": 0.01, "note": "its result is wrong"}]},
                "spsv": {"lower": triangle, "upper": triangle},
                "ilu0": {"no_level": {"ms": 3.0, "analysis_ms": 1.0}, "use_level": {"ms": 1.2, "analysis_ms": 9.0}},
                "dilu": solve, "dilu_folded": dict(solve, ms_per_iteration=2.0),
                "jacobi": dict(solve, ms_per_iteration=0.5)}]}


def report():
    r = tool.new_report("a GPU", "580.1", "abc", "bench/run-gpu run OUT")
    for system in (SYSTEM, tool.FIXED_COST):
        tool.join(r, system, ours(system), peer(), [])
    return r


def places(tree, path=()):
    yield path
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, child in children:
        yield from places(child, path + (key,))


class Table(unittest.TestCase):
    def test_figures_worked_by_hand(self):
        text = tool.table(report())
        name = "| aniso3d:100x100x100 | "
        for line in (name + "1,000 | 7,000 | 0.0200 | 0.0300 | SELL_ALG1 | 1.50 | 0.50 |",
                     # the bound: (12 * 3000 + 28 * 1000) bytes at 4 TB/s are 16 ns
                     name + "28 | 0.800 | 0.500 | **0.400** | 0.900 | 2.25 | 0.800 | 0.900 | 1.12 | 0.0300 | "
                     "0.0000160 |",
                     name + "0.400 | 0.800 | 0.50 | 0.400 | 1.20 | use_level | 9.00 | 3.00 | 3.00 |",
                     name + "0.250 (100) | 0.250 (100) | 2.00 (90) | 8.00 | 8.00 | 0.250 (100) | 0.500 (90) | 2.00 |",
                     name + "31.0 (100) | 31.0 (100) | 31.0 (100) | 31.0 (100) | bicgstab+dilu, block-multicolour | "
                     "124 | 4.00 | 2.0 |",
                     # of the first two right-hand sides, of one; sweeps by levels 2.4, by tiles 1.2
                     name + "75.0 | 90.0 | 1.20 | 80.0 | 84.0 | 1.05 | level-set | 2.00 |",
                     "| poisson2d:100x100 | 250 | 500 | 25 |"):
            self.assertIn(line + "\n", text)
        self.assertNotIn("What is missing", text)

    def test_whatever_is_missing_or_wrong_shows_as_a_dash(self):
        good = report()
        for path in list(places(good))[1:]:
            for wrong in ("gone", None, {}, {"error": "it failed"}, -1.0):
                r = copy.deepcopy(good)
                at = r
                for key in path[:-1]:
                    at = at[key]
                if wrong == "gone":
                    del at[path[-1]]
                elif not (isinstance(wrong, float) and isinstance(at[path[-1]], (dict, list, str))):
                    at[path[-1]] = wrong
                with self.subTest(path=path, wrong=wrong):
                    self.assertIn("## The fixed cost", tool.table(r))
        self.assertIn("| geometric mean |", tool.table({}))

    def test_a_solve_that_did_not_converge_has_no_ratio(self):
        r = report()
        r["systems"]["aniso3d:100x100x100"]["krilu"]["solve"]["auto"]["status"] = "stagnated"
        self.assertIn("| 31.0 (100), stagnated |", tool.table(r))
        self.assertIn("| 124 | – | 2.0 |", tool.table(r))


class Run(unittest.TestCase):
    def test_a_program_that_hangs_is_ended_and_the_other_still_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            pack, out = pathlib.Path(folder) / "pack", pathlib.Path(folder) / "out"
            (pack / "matrices").mkdir(parents=True)
            (pack / "matrices" / "foam_small.mtx.gz").touch()
            (pack / "matrices" / "foam_small_b.mtx.gz").touch()
            (pack / "commit").write_text("abc\n")
            (pack / "peer.json").write_text(json.dumps(peer()))
            for name, body in (("krilu-bench-gpu", "sleep 60 & wait"), ("krilu-cusparse-peer", "cp peer.json \"$3\"")):
                (pack / name).write_text("#!/bin/sh\n" + body + "\n")
                (pack / name).chmod(0o755)
            start = time.monotonic()
            with mock.patch.multiple(tool, PACK=pack, ROOT=pathlib.Path(folder), SETS={"systems": ([SYSTEM], [])},
                                     LEAST_SECONDS=0), \
                    contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                status = tool.main(["run", str(out), "--limit", "0.5"])
            self.assertLess(time.monotonic() - start, 30)
            self.assertEqual(status, 0)
            r = json.loads((out / "gpu.json").read_text())
            self.assertEqual(list(r["systems"]), ["aniso3d:100x100x100", "foam_small"])
            self.assertEqual((r["commit"], r["copy_TB_per_s"], r["left_out"]), ("abc", 4.0, []))
            self.assertIn("krilu-bench-gpu: ended after 0.5 s", r["systems"]["foam_small"]["failures"][0])
            self.assertIn("SELL_ALG1", (out / "gpu.md").read_text())

    def test_meshes_are_systems_in_both_numberings(self):
        with tempfile.TemporaryDirectory() as folder:
            pack = pathlib.Path(folder)
            (pack / "matrices" / "openfoam_airFoil2D").mkdir(parents=True)
            for name in ("mesh_cylinder_lam.su2.gz", "spe10_model2_kx.txt.gz", "spe10_model2_kz.txt.gz"):
                (pack / "matrices" / name).touch()
            with mock.patch.multiple(tool, PACK=pack):
                systems = tool.packed_meshes()
        self.assertEqual(systems[0], "gen:spe10:matrices/spe10_model2_kx.txt.gz,matrices/spe10_model2_kz.txt.gz")
        self.assertEqual(systems[2], "gen:fv:matrices/mesh_cylinder_lam.su2.gz,20,shuffled")
        self.assertEqual([tool.display(s) for s in systems],
                         ["SPE10, pressure", "cylinder_lam x 20", "cylinder_lam x 20 shuffled",
                          "openfoam_airFoil2D x 47", "openfoam_airFoil2D x 47 shuffled"])

    def test_what_the_time_does_not_allow_is_listed(self):
        with tempfile.TemporaryDirectory() as folder:
            pack = pathlib.Path(folder)
            for name in ("krilu-bench-gpu", "krilu-cusparse-peer"):
                (pack / name).touch()
            with mock.patch.multiple(tool, PACK=pack), contextlib.redirect_stdout(io.StringIO()) as said:
                status = tool.main(["run", str(pack / "out"), "--set", "quick", "--seconds", "1"])
            self.assertEqual(status, 1)
            self.assertIn("left out for want of time: aniso3d:100x100x100, convdiff3d:148x148x58", said.getvalue())


if __name__ == "__main__":
    unittest.main()
