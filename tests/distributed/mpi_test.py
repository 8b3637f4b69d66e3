#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MPI ranks by mpirun: every call on 1, 2 and 3 ranks; and a rank that fails, dies or leaves ends all ranks within
seconds, with its sentence and a status that is not zero.

usage: mpi_test.py MPI_MAIN [MPIRUN]"""
import os
import re
import subprocess
import sys
import time
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import open_mpi

MAIN = sys.argv[1]
MPIRUN = sys.argv[2] if len(sys.argv) > 2 else "mpirun"
SECONDS = 20  # to end in, on a machine that is busy


def run(ranks, case):
    start = time.monotonic()
    done = subprocess.run([MPIRUN, "-np", str(ranks), MAIN, case], env=open_mpi.environment(), capture_output=True,
                          text=True, timeout=100)
    return done.returncode, done.stdout, done.stderr, time.monotonic() - start


class Ranks(unittest.TestCase):
    def test_every_call_brings_what_it_must(self):
        for ranks in (1, 2, 3, 5):
            status, out, err, _ = run(ranks, "calls")
            self.assertEqual(status, 0, err)
            self.assertEqual(len(re.findall(r"rank \d of \d is through", out)), ranks, out)

    def test_a_rank_that_fails_ends_all_with_its_sentence_once(self):
        for ranks in (1, 2, 3):
            status, out, err, seconds = run(ranks, "one-fails")
            self.assertEqual(status, 4, err)
            self.assertEqual(err.count("row 7 is missing"), 1, err)
            if ranks > 1:
                self.assertIn(f"rank {ranks - 1} of {ranks}: row 7 is missing", err)
            self.assertNotIn("is through", out)
            self.assertLess(seconds, SECONDS)

    def test_what_all_ranks_find_wrong_is_written_once(self):
        for ranks in (1, 2, 3):
            status, _, err, seconds = run(ranks, "all-fail")
            self.assertEqual(status, 4, err)
            self.assertEqual(err.count("the options are wrong"), 1, err)
            self.assertLess(seconds, SECONDS)

    def test_a_rank_that_dies_or_leaves_or_is_not_caught_ends_all(self):
        for case in ("one-dies", "one-exits", "uncaught"):
            status, out, err, seconds = run(3, case)
            self.assertNotEqual(status, 0, case)
            self.assertNotIn("is through", out)
            self.assertLess(seconds, SECONDS, case)

    def test_a_process_without_launcher_knows_it(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI", "MV2_"))}
        done = subprocess.run([MAIN], env=env, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout.strip()), (3, "not started by mpirun"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
