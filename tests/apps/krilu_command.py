# SPDX-License-Identifier: Apache-2.0
# What tests of the command krilu share: matrices and vectors as files, residuals formed here, and a Case that runs the
# command in a folder of its own.
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

COMMAND = None
BANNER = "%%MatrixMarket matrix coordinate real general\n"
FULL = "/dev/full"


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


def main():
    """The tests of the program that was started; argument 1 is the command's path."""
    global COMMAND
    if len(sys.argv) < 2:
        sys.exit("usage: %s PATH_OF_KRILU [unittest arguments]" % os.path.basename(sys.argv[0]))
    COMMAND = os.path.abspath(sys.argv.pop(1))
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    unittest.main()
