#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Tests of tools/fetch-matrices against a small server on the loopback interface, which
# can go on in the middle of a file or not, drop the connection half way, promise a wrong
# size, and send archives that are damaged or hostile. Everything that is written goes to
# temporary folders, and nothing outside this machine is asked for anything.

import contextlib
import gzip
import http.server
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
from unittest import mock

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "fetch-matrices"


def load_tool():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("fetch_matrices", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


tool = load_tool()


# What the server has.


def market(n, kind="general"):
    """A tridiagonal matrix of order n; of a symmetric one the lower triangle is stored."""
    lines = ["%d %d 2.0" % (i, i) for i in range(1, n + 1)]
    lines += ["%d %d -1.0" % (i + 1, i) for i in range(1, n)]
    if kind == "general":
        lines += ["%d %d -0.%09d" % (i, i + 1, i * 7919 % 10 ** 9) for i in range(1, n)]
    head = ["%%%%MatrixMarket matrix coordinate real %s" % kind, "% a test", "%",
            "%d %d %d" % (n, n, len(lines))]
    return ("\n".join(head + lines) + "\n").encode()


def vector(n):
    return ("%%%%MatrixMarket matrix array real general\n%d 1\n" % n + "1.0\n" * n).encode()


def archive(members):
    """A .tar.gz of (path, bytes) pairs; None as bytes makes a symbolic link."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for path, data in members:
            info = tarfile.TarInfo(path)
            if data is None:
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/hostname"
                tar.addfile(info)
            else:
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def simple(name, n, kind="general"):
    return archive([("%s/%s.mtx" % (name, name), market(n, kind))])


def row(group, name, n, nnz=None, entries=None, kind="computational fluid dynamics problem"):
    nnz = 3 * n - 2 if nnz is None else nnz
    tail = "" if entries is None else ",%d" % entries
    return "%s,%s,%d,%d,%d,1,0,1,0,1.0,0.5,%s%s" % (group, name, n, n, nnz, kind, tail)


BIG = 20000  # Its archive is some 360 kB, so that half of it takes more than one read.
FILES = {
    "/MM/Alpha/plain.tar.gz": archive([
        ("plain/plain.mtx", market(50)), ("plain/plain_b.mtx", vector(50)),
        ("plain/plain_x.mtx", vector(50)), ("plain/README.txt", b"not wanted"),
        ("plain/link.mtx", None), ("plain/plain_link.mtx", None)]),
    "/MM/Alpha/big.tar.gz": simple("big", BIG),
    "/MM/Alpha/half.tar.gz": simple("half", 60, "symmetric"),
    "/MM/Alpha/twice.tar.gz": simple("twice", 10),
    "/MM/Beta/twice.tar.gz": simple("twice", 20),
    "/MM/Bad/climber.tar.gz": archive([
        ("climber/climber.mtx", market(10)), ("climber/../../escaped.mtx", market(10))]),
    "/MM/Bad/absolute.tar.gz": archive([
        ("absolute/absolute.mtx", market(10)), ("/tmp/absolute_b.mtx", vector(10))]),
    "/MM/Bad/noise.tar.gz": b"this is no archive" * 100,
    "/MM/Bad/cut.tar.gz": simple("cut", 500)[:-400],
    "/MM/Bad/flipped.tar.gz": simple("flipped", 10)[:-8] + b"\0\0\0\0" + b"\0\0\0\0",
    "/MM/Bad/empty.tar.gz": archive([("other/other.mtx", market(10))]),
    "/MM/Bad/order.tar.gz": simple("order", 11),
    "/MM/Bad/fewer.tar.gz": archive([
        ("fewer/fewer.mtx", market(10).replace(b"10 10 28", b"10 10 29"))]),
    "/MM/Bad/sparser.tar.gz": simple("sparser", 10),
}
INDEX = [
    row("Alpha", "plain", 50, entries=148), row("Alpha", "big", BIG),
    row("Alpha", "half", 60, kind="a kind"), row("Alpha", "twice", 10), row("Beta", "twice", 20),
    row("Bad", "climber", 10), row("Bad", "absolute", 10), row("Bad", "noise", 10),
    row("Bad", "cut", 500), row("Bad", "flipped", 10), row("Bad", "empty", 10),
    row("Bad", "order", 10), row("Bad", "fewer", 10), row("Bad", "sparser", 10, nnz=30),
    row("Bad", "nowhere", 10), row("../..", "hostile", 10), "a line that is too short",
]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        site = self.server.site
        site.asked.append((self.path, self.headers.get("Range")))
        self.close_connection = True
        if site.refusals > 0:
            site.refusals -= 1
            self.send_error(503)
            return
        if self.path == "/files/ssstats.csv":
            data = ("%d\n21-Nov-2025 00:00:00\n" % len(site.index)
                    + "\n".join(site.index) + "\n").encode()
        elif self.path in site.files:
            data = site.files[self.path]
        else:
            self.send_error(404)
            return
        matrix = self.path.startswith("/MM/")
        begin = 0
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        if wanted and site.ranges:
            begin = int(wanted.group(1))
            if begin >= len(data):
                self.send_response(416)
                self.send_header("Content-Range", "bytes */%d" % len(data))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", "bytes %d-%d/%d"
                             % (begin + site.shift, len(data) - 1, len(data)))
        else:
            self.send_response(200)
        body = data[begin:]
        self.send_header("Content-Length", str(len(body) + (site.lie if matrix else 0)))
        self.end_headers()
        if matrix and site.drops > 0:
            site.drops -= 1
            body = body[:len(body) // 2]
        if matrix and site.stall:
            self.wfile.write(body[:len(body) // 2])
            self.wfile.flush()
            site.stalled.set()
            site.go_on.wait(10)
            return
        with contextlib.suppress(OSError):
            self.wfile.write(body)


class Site:
    """The server and its moods."""

    def __init__(self):
        self.files, self.index, self.asked = dict(FILES), list(INDEX), []
        self.ranges = True    # Whether Range is honoured.
        self.shift = 0        # How far Content-Range is off.
        self.drops = 0        # How many answers for matrices are cut off half way.
        self.refusals = 0     # How many answers are a 503.
        self.lie = 0          # By how much Content-Length is wrong.
        self.stall = False    # Whether an answer stands still half way.
        self.stalled, self.go_on = threading.Event(), threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.site = self
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self):
        self.go_on.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def matrices_asked(self):
        return [asked for asked in self.asked if asked[0].startswith("/MM/")]


class FetchTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name) / "deep" / "matrices"
        self.site = Site()
        self.addCleanup(self.site.close)
        environment = {key: value for key, value in os.environ.items()
                       if key != "KRILU_MATRICES" and not key.lower().endswith("_proxy")}
        environment["no_proxy"] = "*"
        for patch in (mock.patch.dict(os.environ, environment, clear=True),
                      mock.patch.object(tool, "FIRST_WAIT", 0.01),
                      mock.patch.object(tool, "TIMEOUT", 5.0)):
            patch.start()
            self.addCleanup(patch.stop)

    def fetch(self, *arguments, to=True):
        """Status, output and errors of one run."""
        arguments = list(arguments) + ["--base-url", self.site.url]
        if to:
            arguments += ["--to", str(self.folder)]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = tool.main(arguments)
            except SystemExit as leaving:
                status = leaving.code
        for text in (out.getvalue(), err.getvalue()):
            self.assertNotIn("Traceback", text)
        return status, out.getvalue(), err.getvalue()

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def content(self, name):
        return gzip.decompress((self.folder / name).read_bytes())

    def part(self, group, name):
        return self.folder / ("%s.%s.tar.gz.part" % (group, name))

    # What goes well.

    def test_plain_fetch(self):
        status, out, err = self.fetch("plain")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(self.names(), ["plain.mtx.gz", "plain_b.mtx.gz", "plain_x.mtx.gz",
                                        "ssstats.csv"])
        self.assertEqual(self.content("plain.mtx.gz"), market(50))
        self.assertEqual(self.content("plain_b.mtx.gz"), vector(50))
        self.assertIn("50 by 50 with 148 entries", out)

    def test_symmetric_counts_both_triangles(self):
        status, out, _ = self.fetch("half")
        self.assertEqual(status, 0)
        self.assertIn("with 178 entries", out)

    def test_folder_from_the_environment(self):
        with mock.patch.dict(os.environ, {"KRILU_MATRICES": str(self.folder)}):
            status, _, _ = self.fetch("plain", to=False)
        self.assertEqual(status, 0)
        self.assertIn("plain.mtx.gz", self.names())

    def test_quiet(self):
        self.assertEqual(self.fetch("plain", "--quiet"), (0, "", ""))

    def test_same_bytes_each_time(self):
        self.fetch("plain")
        first = (self.folder / "plain.mtx.gz").read_bytes()
        (self.folder / "plain.mtx.gz").unlink()
        self.fetch("plain")
        self.assertEqual((self.folder / "plain.mtx.gz").read_bytes(), first)

    def test_already_present(self):
        self.fetch("plain")
        before = len(self.site.asked)
        status, out, _ = self.fetch("plain", "Alpha/plain")
        self.assertEqual(status, 0)
        self.assertEqual(out.count("already present"), 1)
        self.assertEqual(len(self.site.asked), before, "the server was asked again")

    def test_already_present_without_gzip(self):
        self.folder.mkdir(parents=True)
        (self.folder / "plain.mtx").write_bytes(market(50))
        status, out, _ = self.fetch("plain")
        self.assertEqual(status, 0)
        self.assertIn("already present", out)
        self.assertEqual(self.site.matrices_asked(), [])

    def test_already_present_without_a_server(self):
        self.folder.mkdir(parents=True)
        (self.folder / "plain.mtx").write_bytes(market(50))
        self.site.refusals = 1000
        status, out, _ = self.fetch("plain")
        self.assertEqual(status, 0)
        self.assertIn("already present", out)

    def test_another_matrix_is_present(self):
        self.assertEqual(self.fetch("Alpha/twice")[0], 0)
        status, _, err = self.fetch("Beta/twice")
        self.assertEqual(status, 3)
        self.assertIn("another matrix, 10 by 10", err)

    def test_set(self):
        with mock.patch.dict(tool.SETS, {"hec-paper": ("A paper", ["plain", "half"], "A remark.")}):
            status, out, _ = self.fetch("--set", "hec-paper")
        self.assertEqual(status, 0)
        self.assertIn("A remark.", out)
        self.assertIn("half.mtx.gz", self.names())
        self.assertIn("plain.mtx.gz", self.names())

    def test_sets_as_they_are(self):
        self.assertEqual(sorted(tool.SETS), ["dilu-paper", "gmres-ir-paper", "hec-paper"])
        self.assertEqual(tool.SETS["dilu-paper"][1],
                         ["apache2", "ASIC_320ks", "atmosmodd", "cage13", "G3_circuit",
                          "parabolic_fem", "offshore"])
        for _, names, _ in tool.SETS.values():
            self.assertEqual(len(names), len(set(names)))
            self.assertTrue(all(tool.SAFE_NAME.fullmatch(name) for name in names))

    def test_list(self):
        status, out, _ = self.fetch("--list", to=False)
        self.assertEqual(status, 0)
        self.assertIn("parabolic_fem", out)
        self.assertEqual(self.site.asked, [])
        status, out, _ = self.fetch("--list", "half", "Beta/twice")
        self.assertEqual(status, 0)
        self.assertIn("Alpha/half: 60 by 60, 178 entries, a kind", out)
        self.assertEqual(self.site.matrices_asked(), [])

    # Connections that break.

    def test_resume_after_a_drop(self):
        self.site.drops = 1
        status, out, _ = self.fetch("big")
        self.assertEqual(status, 0)
        half = len(FILES["/MM/Alpha/big.tar.gz"]) // 2
        self.assertEqual([asked for _, asked in self.site.matrices_asked()],
                         [None, "bytes=%d-" % half])
        self.assertIn("going on at", out)
        self.assertEqual(self.content("big.mtx.gz"), market(BIG))

    def test_drops_that_bring_something_do_not_use_up_the_tries(self):
        self.site.drops = tool.TRIES + 3
        status, _, _ = self.fetch("big")
        self.assertEqual(status, 0)

    def test_resume_by_a_second_run(self):
        self.site.drops = 1
        with mock.patch.object(tool, "ALL_TRIES", 1):
            status, _, err = self.fetch("big")
        self.assertEqual(status, 3)
        self.assertIn("closed early", err)
        self.assertIn("the same command goes on from there", err)
        half = self.part("Alpha", "big").stat().st_size
        self.assertEqual(half, len(FILES["/MM/Alpha/big.tar.gz"]) // 2)
        status, _, _ = self.fetch("big")
        self.assertEqual(status, 0)
        self.assertEqual(self.site.matrices_asked()[-1][1], "bytes=%d-" % half)
        self.assertEqual(self.content("big.mtx.gz"), market(BIG))
        self.assertEqual(self.names(), ["big.mtx.gz", "ssstats.csv"])

    def test_part_that_is_complete(self):
        self.folder.mkdir(parents=True)
        self.part("Alpha", "big").write_bytes(FILES["/MM/Alpha/big.tar.gz"])
        status, _, _ = self.fetch("big")
        self.assertEqual(status, 0)
        self.assertEqual(len(self.site.matrices_asked()), 1)

    def test_part_that_is_too_long(self):
        self.folder.mkdir(parents=True)
        self.part("Alpha", "half").write_bytes(b"x" * 100000)
        status, _, _ = self.fetch("half")
        self.assertEqual(status, 0)
        self.assertEqual(self.content("half.mtx.gz"), market(60, "symmetric"))

    def test_part_of_another_version(self):
        self.folder.mkdir(parents=True)
        self.part("Alpha", "big").write_bytes(b"x" * 1000)
        status, out, _ = self.fetch("big")
        self.assertEqual(status, 0)
        self.assertIn("fetched anew", out)
        self.assertEqual(self.content("big.mtx.gz"), market(BIG))

    def test_server_without_range(self):
        self.site.ranges, self.site.drops = False, 1
        status, out, _ = self.fetch("big")
        self.assertEqual(status, 0)
        self.assertIn("starts again", out)
        self.assertEqual(self.content("big.mtx.gz"), market(BIG))

    def test_server_that_sends_another_range(self):
        self.site.drops, self.site.shift = 1, 5
        status, _, _ = self.fetch("big")
        self.assertEqual(status, 0)
        self.assertEqual(self.content("big.mtx.gz"), market(BIG))

    def test_server_without_range_that_always_drops(self):
        self.site.ranges, self.site.drops = False, 10 ** 6
        status, _, err = self.fetch("big", "plain")
        self.assertEqual(status, 3)
        self.assertIn("given up after", err)
        self.assertLessEqual(len(self.site.matrices_asked()), 2 * tool.TRIES + 2)

    def test_server_that_is_busy_for_a_while(self):
        self.site.refusals = 2
        self.assertEqual(self.fetch("plain")[0], 0)

    def test_no_server(self):
        self.site.url = "http://127.0.0.1:9"
        status, _, err = self.fetch("plain")
        self.assertEqual(status, 3)
        self.assertIn("The index of the collection cannot be had", err)

    def test_stopped_from_the_keyboard(self):
        self.site.stall = True
        process = subprocess.Popen(
            [sys.executable, str(TOOL), "big", "--to", str(self.folder), "--base-url",
             self.site.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        self.assertTrue(self.site.stalled.wait(10))
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
        self.assertEqual(process.returncode, 3, err)
        self.assertIn("Stopped.", err)
        self.assertNotIn("Traceback", out + err)
        self.assertGreater(self.part("Alpha", "big").stat().st_size, 0)
        self.site.stall = False
        self.assertEqual(self.fetch("big")[0], 0)
        self.assertIsNotNone(self.site.matrices_asked()[-1][1])

    @unittest.skipUnless(tool.fcntl, "locks are had on POSIX systems only")
    def test_two_fetches_at_once(self):
        self.folder.mkdir(parents=True)
        with open(self.part("Alpha", "plain"), "ab") as other:
            tool.fcntl.flock(other, tool.fcntl.LOCK_EX)
            status, _, err = self.fetch("plain")
        self.assertEqual(status, 3)
        self.assertIn("another fetch is writing", err)

    def test_line_that_moves_on_a_terminal(self):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        err = Terminal()
        with contextlib.redirect_stderr(err):
            report = tool.Report(quiet=False)
            report.last -= 1
            report.progress("big", 500000, 2000000)
            report.clear()
        self.assertIn("big: 500.0 kB of 2.0 MB (25 %), ", err.getvalue())
        self.assertTrue(err.getvalue().endswith("\r\033[K"))

    # Sizes and archives that are wrong.

    def test_more_promised_than_sent(self):
        self.site.ranges, self.site.lie = False, 100
        status, _, err = self.fetch("plain")
        self.assertEqual(status, 3)
        self.assertRegex(err, r"plain: given up after \d+ tries: ")
        self.assertNotIn("plain.mtx.gz", self.names())

    def test_more_promised_than_sent_and_taken_back(self):
        self.site.lie = 100  # The answer to the second try says how long the file really is.
        self.assertEqual(self.fetch("plain")[0], 0)
        self.assertEqual(self.content("plain.mtx.gz"), market(50))

    def test_less_promised_than_sent(self):
        self.site.lie = -100
        status, _, err = self.fetch("plain")
        self.assertEqual(status, 3)
        self.assertIn("damaged", err)
        self.assertEqual(self.names(), ["ssstats.csv"])

    def test_bad_archives(self):
        for name, said in (("climber", "unsafe path 'climber/../../escaped.mtx'"),
                           ("absolute", "unsafe path '/tmp/absolute_b.mtx'"),
                           ("noise", "the archive is damaged"),
                           ("cut", "the archive is damaged"),
                           ("flipped", "the archive is damaged"),
                           ("empty", "holds no empty/empty.mtx"),
                           ("order", "11 by 11, but the index says 10 by 10"),
                           ("fewer", "promises 29 entries and it has 28"),
                           ("sparser", "has 28 entries, but the index says 30"),
                           ("nowhere", "the server answered 404")):
            with self.subTest(name):
                status, _, err = self.fetch(name)
                self.assertEqual(status, 3)
                self.assertIn(said, err)
                self.assertEqual(self.names(), ["ssstats.csv"])
        escaped = [path for path in self.folder.parents[1].rglob("*") if path.is_file()]
        self.assertEqual([path.name for path in escaped], ["ssstats.csv"])

    def test_others_are_fetched_where_one_fails(self):
        status, _, err = self.fetch("noise", "plain")
        self.assertEqual(status, 3)
        self.assertIn("1 of 2 matrices could not be fetched: noise.", err)
        self.assertIn("plain.mtx.gz", self.names())

    def test_entries_that_differ_are_said(self):
        self.site.index[0] = row("Alpha", "plain", 50, nnz=100, entries=200)
        status, _, err = self.fetch("plain")
        self.assertEqual(status, 0)
        self.assertIn("the file has 148 entries, and the index says 200", err)

    # Names and usage.

    def test_unknown_name(self):
        status, _, err = self.fetch("plan", "half")
        self.assertEqual(status, 2)
        self.assertIn("The collection has no matrix plan.", err)
        self.assertIn("Alpha/plain", err)
        self.assertEqual(self.site.matrices_asked(), [])

    def test_unknown_name_that_is_like_none(self):
        status, _, err = self.fetch("zzzzzzzzqqqq")
        self.assertEqual(status, 2)
        self.assertNotIn("nearest", err)

    def test_name_in_the_wrong_case(self):
        self.assertIn("Alpha/plain", self.fetch("PLAIN")[2])

    def test_name_in_the_wrong_group(self):
        status, _, err = self.fetch("Beta/plain")
        self.assertEqual(status, 2)
        self.assertIn("Alpha/plain", err)

    def test_unsafe_names_of_the_index_are_left_out(self):
        self.assertEqual(self.fetch("hostile")[0], 2)

    def test_index_is_refreshed_for_a_new_name(self):
        self.assertEqual(self.fetch("plain")[0], 0)
        self.site.index.append(row("Gamma", "newcomer", 12))
        self.site.files["/MM/Gamma/newcomer.tar.gz"] = simple("newcomer", 12)
        self.assertEqual(self.fetch("newcomer")[0], 0)
        self.assertIn("newcomer.mtx.gz", self.names())

    def test_index_that_is_none(self):
        self.site.index = ["<html>"]
        status, _, err = self.fetch("plain")
        self.assertEqual(status, 3)
        self.assertIn("is not the index of the collection", err)
        self.assertEqual(self.names(), [])

    def test_ambiguous_name(self):
        status, _, err = self.fetch("twice")
        self.assertEqual(status, 2)
        self.assertIn("Alpha/twice, Beta/twice", err)
        self.assertEqual(self.fetch("Beta/twice")[0], 0)
        self.assertEqual(self.content("twice.mtx.gz"), market(20))

    def test_two_matrices_of_one_name(self):
        status, _, err = self.fetch("Alpha/twice", "Beta/twice")
        self.assertEqual(status, 2)
        self.assertIn("two folders", err)

    def test_no_target_folder(self):
        status, _, err = self.fetch("plain", to=False)
        self.assertEqual(status, 2)
        self.assertIn("KRILU_MATRICES", err)
        self.assertIn("--to", err)

    def test_target_that_is_a_file(self):
        self.folder.parent.mkdir(parents=True)
        self.folder.write_text("in the way")
        status, _, err = self.fetch("plain")
        self.assertEqual(status, 3)
        self.assertIn("cannot be used", err)

    def test_bad_usage(self):
        for arguments in ([], ["--set", "no-paper"], ["plain", "--base-url", "ftp://x"]):
            with self.subTest(arguments):
                out, err = io.StringIO(), io.StringIO()
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                    with self.assertRaises(SystemExit) as leaving:
                        tool.main(arguments + ["--to", str(self.folder)])
                self.assertEqual(leaving.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
