#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# PC type krilu as PETSc's users meet it, on 1 and 2 ranks: PETSc's own tutorials, counts of iterations against PETSc's
# ilu and krilu's own solver, updates of values, errors. Arguments: libkriluPetsc.so, krilu-petsc-probe, a C compiler
# that knows MPI, and mpirun. The tutorials' sources come with Debian's libpetsc*-dev-examples; KRILU_PETSC_EXAMPLES is
# another folder that has them (with ksp/ksp/tutorials below it), and KRILU_PETSC_CFLAGS is what else compiles them.
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/support"))
import open_mpi

PLUGIN = PROBE = COMPILER = MPIRUN = None
BCGS = "-ksp_type bcgs -ksp_pc_side right -ksp_norm_type unpreconditioned -ksp_rtol 1e-8"
LATTICE = "gen:convdiff3d:16x17x18"  # where dilu and ilu0 are the same
WIDE = "gen:poisson3d27:14x15x16"    # where they are not
SYMMETRIC = "gen:poisson3d:15x15x15"
# codes of petscerror.h
SUP, WRONG, OUTOFRANGE, ZERO_PIVOT, CHOLESKY_ZERO_PIVOT = 56, 62, 63, 71, 81
ENVIRONMENT = open_mpi.environment(OMP_NUM_THREADS="2")


def run(program, options, ranks=1):
    command = ([MPIRUN, "-n", str(ranks)] if ranks > 1 else []) + [program] + shlex.split(options)
    done = subprocess.run(command, env=ENVIRONMENT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=120)
    return done.returncode, done.stdout


class Solves:
    """What a run of the probe printed."""

    def __init__(self, status, text):
        self.status, self.text = status, text
        self.solves = [(int(i), reason, float(r)) for i, reason, r in
                       re.findall(r"iterations (\d+) reason (\S+) residual (\S+)", text)]
        self.errors = [(int(code), sentence) for code, sentence in re.findall(r"^error (\d+) (.*)$", text, re.M)]
        self.counts = [(int(a), int(f)) for a, f in re.findall(r"analyses (\d+), factorisations (\d+)", text)]

    @property
    def iterations(self):
        return [i for i, _, _ in self.solves]

    @property
    def residuals(self):
        return [r for _, _, r in self.solves]


def probe(options, system=LATTICE, ranks=1):
    return Solves(*run(PROBE, f"-system {system} {BCGS} {options}", ranks))


def krilu(options="", system=LATTICE, ranks=1, inside=None):
    pc = f"-pc_type {inside} -sub_pc_type krilu" if inside else "-pc_type krilu"
    return probe(f"-dll_append {PLUGIN} {pc} {options}", system, ranks)


def own(precond, system=LATTICE, options=""):
    return Solves(*run(PROBE, f"-system {system} -ksp_rtol 1e-8 -own {precond} {options}"))


class Case(unittest.TestCase):
    def converged(self, *runs):
        for r in runs:
            self.assertEqual(r.status, 0, r.text)
            self.assertTrue(r.solves, r.text)
            for iterations, reason, residual in r.solves:
                self.assertIn(reason, ("CONVERGED_RTOL", "CONVERGED_HAPPY_BREAKDOWN", "converged"), r.text)
                self.assertLess(residual, 1.1e-8, r.text)

    def same_counts(self, one, other):
        self.converged(one, other)
        self.assertEqual(one.iterations, other.iterations)

    def refused(self, r, code, *words):
        self.assertNotEqual(r.status, 0, r.text)
        self.assertTrue(r.errors, r.text)
        self.assertEqual(r.errors[0][0], code, r.text)
        for word in words:
            self.assertIn(word, r.errors[0][1])


class Counts(Case):
    def test_ilu0_takes_as_many_iterations_as_petscs_ilu(self):
        for system in (LATTICE, WIDE, SYMMETRIC):
            ilu, ours = probe("-pc_type ilu", system), krilu("-pc_krilu_type ilu0", system)
            self.same_counts(ours, ilu)
            self.assertAlmostEqual(ours.residuals[0] / ilu.residuals[0], 1, delta=1e-2)

    def test_iluk_takes_as_many_iterations_as_petscs_ilu_of_that_level(self):
        for level in (1, 2):
            self.same_counts(krilu(f"-pc_krilu_type iluk -pc_krilu_levels {level}", WIDE),
                             probe(f"-pc_type ilu -pc_factor_levels {level}", WIDE))

    def test_ic0_takes_as_many_iterations_as_petscs_icc(self):
        cg = "-ksp_type cg -ksp_pc_side left"
        self.same_counts(krilu("-pc_krilu_type ic0 " + cg, SYMMETRIC), probe("-pc_type icc " + cg, SYMMETRIC))

    def test_jacobi_takes_as_many_iterations_as_petscs(self):
        self.same_counts(krilu("-pc_krilu_type jacobi", WIDE), probe("-pc_type jacobi", WIDE))

    def test_each_type_takes_as_many_iterations_as_in_krilus_own_solver(self):
        for system, options, precond in (
                (LATTICE, "", "dilu"), (WIDE, "", "dilu"), (SYMMETRIC, "-pc_krilu_type dic", "dic"),
                (WIDE, "-pc_krilu_type ilu0", "ilu0"), (SYMMETRIC, "-pc_krilu_type ic0", "ic0"),
                (WIDE, "-pc_krilu_type iluk -pc_krilu_levels 2", "iluk:2"),
                (WIDE, "-pc_krilu_type iluk:2", "iluk:2"),
                (WIDE, "-pc_krilu_type ilut -pc_krilu_fill 8 -pc_krilu_drop_tolerance 0.03", "ilut:8,0.03"),
                (WIDE, "-pc_krilu_type ras -pc_krilu_parts 5 -pc_krilu_overlap 2", "ras:5,2"),
                (WIDE, "-pc_krilu_type ras -pc_krilu_parts 6 -pc_krilu_local iluk -pc_krilu_levels 2",
                 "ras:6,1,iluk:2"),
                (WIDE, "-pc_krilu_type block-ilu -pc_krilu_parts 7 -pc_krilu_local dilu", "block-ilu:7,dilu"),
                (WIDE, "-pc_krilu_type jacobi", "jacobi"), (WIDE, "-pc_krilu_type none", "none")):
            with self.subTest(precond=precond):
                self.same_counts(krilu(options, system), own(precond, system))

    def test_the_options_change_what_is_applied(self):
        residuals = {options: krilu(options, WIDE).residuals[0] for options in
                     ("", "-pc_krilu_type ilu0", "-pc_krilu_type iluk", "-pc_krilu_type iluk -pc_krilu_levels 2",
                      "-pc_krilu_type ilut", "-pc_krilu_type ilut -pc_krilu_fill 3",
                      "-pc_krilu_type ilut -pc_krilu_drop_tolerance 0.1", "-pc_krilu_shift 0.1",
                      "-pc_krilu_ordering multicolour", "-pc_krilu_type ras -pc_krilu_parts 3",
                      "-pc_krilu_type ras -pc_krilu_parts 3 -pc_krilu_overlap 3",
                      "-pc_krilu_type block-ilu -pc_krilu_parts 3")}
        self.assertEqual(len(set(residuals.values())), len(residuals), residuals)

    def test_ordering_takes_as_many_iterations_as_in_krilus_own_solver(self):
        for ordering in ("rcm", "multicolour"):
            self.same_counts(krilu(f"-pc_krilu_ordering {ordering}"), own("dilu", options=f"-own_ordering {ordering}"))

    def test_sweeps_threads_and_the_emulated_device_change_nothing(self):
        plain = krilu("", WIDE)
        for options in ("-pc_krilu_triangular serial", "-pc_krilu_triangular level-set -pc_krilu_threads 2",
                        "-pc_krilu_triangular sync-free -pc_krilu_threads 2", "-pc_krilu_threads 0",
                        "-pc_krilu_device emulated"):
            other = krilu(options, WIDE)
            self.same_counts(other, plain)
            self.assertEqual(other.residuals, plain.residuals, options)

    def test_auto_is_what_krilu_chooses(self):
        self.same_counts(krilu("-pc_krilu_type auto"), krilu(""))
        self.same_counts(krilu("-pc_krilu_type auto", SYMMETRIC), krilu("-pc_krilu_type dic", SYMMETRIC))


class Ranks(Case):
    def test_inside_bjacobi_and_asm(self):
        for ranks in (1, 2):
            for inside in ("bjacobi", "asm"):
                with self.subTest(ranks=ranks, inside=inside):
                    self.same_counts(krilu("-sub_pc_krilu_type ilu0", WIDE, ranks, inside),
                                     probe(f"-pc_type {inside} -sub_pc_type ilu", WIDE, ranks))
                    dilu = krilu("", WIDE, ranks, inside)
                    self.converged(dilu)
                    self.assertNotEqual(dilu.residuals, krilu("-sub_pc_krilu_type ilu0", WIDE, ranks, inside).residuals)

    def test_several_blocks_a_rank(self):
        for ranks in (1, 2):
            blocks = "-pc_bjacobi_blocks 4 "
            self.same_counts(krilu(blocks + "-sub_pc_krilu_type ilu0", WIDE, ranks, "bjacobi"),
                             probe(blocks + "-pc_type bjacobi -sub_pc_type ilu", WIDE, ranks))

    def test_a_parallel_matrix_of_one_rank(self):
        self.same_counts(krilu("-mat_type mpiaij -pc_krilu_type ilu0"), probe("-pc_type ilu"))

    def test_a_parallel_matrix_is_refused_by_naming_bjacobi(self):
        self.refused(krilu("", ranks=2), SUP, "-pc_type bjacobi -sub_pc_type krilu")

    def test_a_rank_without_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "one.mtx")
            with open(path, "w") as f:
                f.write("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 4.0\n")
            for inside in ("bjacobi", "asm"):
                for kind in ("dilu", "ilu0", "iluk", "jacobi"):
                    self.converged(krilu("-sub_pc_krilu_type " + kind, path, 2, inside))


class Updates(Case):
    def test_new_values_are_taken_without_an_analysis(self):
        for kind in ("dilu", "ilu0", "iluk", "ilut", "ras", "block-ilu", "jacobi"):
            r = krilu(f"-pc_krilu_type {kind} -steps 3 -ksp_view", WIDE)
            self.converged(r)
            self.assertEqual(r.counts, [(1, 1), (1, 2), (1, 3)], r.text)
        self.same_counts(krilu("-pc_krilu_type ilu0 -steps 4", WIDE), probe("-pc_type ilu -steps 4", WIDE))
        self.assertEqual(krilu("-steps 2 -set_operators -ksp_view").counts, [(1, 1), (1, 2)])

    def test_so_they_are_inside_bjacobi_and_asm(self):
        for ranks in (1, 2):
            for inside in ("bjacobi", "asm"):
                r = krilu("-sub_pc_krilu_type ilu0 -steps 3 -ksp_view", WIDE, ranks, inside)
                self.assertEqual(r.counts, [(1, 1), (1, 2), (1, 3)], r.text)
                self.same_counts(r, probe(f"-pc_type {inside} -sub_pc_type ilu -steps 3", WIDE, ranks))

    def test_a_new_pattern_is_analysed(self):
        r = krilu("-pc_krilu_type ilu0 -steps 3 -new_pattern -ksp_view", WIDE)
        self.assertEqual(r.counts, [(1, 1), (1, 2), (2, 3)], r.text)
        self.same_counts(r, probe("-pc_type ilu -steps 3 -new_pattern", WIDE))

    def test_the_same_values_are_not_factored_again(self):
        r = krilu("-again 'ksp_rtol 1e-9' -ksp_view")
        self.assertEqual(r.counts, [(1, 1), (1, 1)], r.text)

    def test_options_that_change_are_taken(self):
        r = krilu("-again 'pc_krilu_type ilu0'", WIDE)
        self.converged(r)
        self.assertEqual(r.residuals[1:], krilu("-pc_krilu_type ilu0", WIDE).residuals)
        self.assertNotEqual(r.residuals[0], r.residuals[1])


class Said(Case):
    def test_help_lists_every_option(self):
        text = krilu("-help").text
        for option in ("type", "local", "parts", "overlap", "levels", "fill", "drop_tolerance", "shift", "scaling",
                       "triangular", "ordering", "device", "threads"):
            self.assertIn(f"-pc_krilu_{option} ", text)
        self.assertIn("dilu dic ilu0 ic0 iluk ilut ras block-ilu jacobi", text)

    def test_view_says_what_was_done(self):
        text = krilu("-pc_krilu_type ras -pc_krilu_parts 4 -ksp_view").text
        for words in ("type: krilu", "ras:4,1,ilu0", "ordering auto", "device host, threads 1",
                      "analyses 1, factorisations 1"):
            self.assertIn(words, text)

    def test_what_took_the_place_of_auto_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "pivot.mtx")
            with open(path, "w") as f:  # dic's second pivot is 1 - 1/1; the matrix is not singular
                f.write("%%MatrixMarket matrix coordinate real general\n3 3 7\n"
                        + "".join(f"{i} {j} 1\n" for i in (1, 2, 3) for j in (1, 2, 3) if abs(i - j) < 2))
            said = "-pc_krilu_type auto: jacobi in place of dic (dic: zero pivot in row 2"
            plain = krilu("-pc_krilu_type auto", path)
            self.converged(plain)
            self.assertNotIn(said, plain.text)
            view, info = (krilu(f"-pc_krilu_type auto {option}", path) for option in ("-ksp_view", "-info"))
            self.assertIn("    note: " + said, view.text)
            self.assertIn("krilu: " + said, info.text)
            for r in (view, info):  # saying it leaves the rest as it is
                self.assertEqual(r.iterations, plain.iterations)
                self.assertEqual(r.residuals, plain.residuals)
            self.assertEqual(view.counts, [(1, 1)])
            inside = krilu("-sub_pc_krilu_type auto -ksp_view", path, inside="bjacobi")
            self.assertIn("note: -sub_" + said[1:], inside.text)

    def test_nothing_is_noted_where_all_was_done_as_asked(self):
        for kind in ("dilu", "ilu0", "ras -pc_krilu_parts 3", "jacobi", "none"):
            self.assertNotIn("note:", krilu(f"-pc_krilu_type {kind} -ksp_view").text)

    def test_an_option_without_effect_is_unused(self):
        text = krilu("-pc_krilu_levels 3 -options_left").text
        self.assertRegex(text, r"(?s)not used.*-pc_krilu_levels")
        text = krilu("-pc_krilu_type iluk -pc_krilu_levels 3 -options_left").text
        self.assertNotRegex(text, r"(?s)not used.*-pc_krilu_levels")

    def test_the_library_loads_by_each_way(self):
        for how in ("-dll_append", "-dll_prepend", "-plugin", "-linked -plugin"):
            self.converged(probe(f"{how} {PLUGIN} -pc_type krilu"))


class Errors(Case):
    def test_unknown_names_list_the_valid_ones(self):
        for options, words in (
                ("-pc_krilu_type ilu", "dilu, dic, ilu0, ic0, iluk, ilut, block-ilu, ras"),
                ("-pc_krilu_type ras -pc_krilu_local lu", "dilu, ilu0, iluk[:LEVEL] or ilut[:MOST,TOLERANCE]"),
                ("-pc_krilu_triangular levels", "level-set"), ("-pc_krilu_ordering rcn", "rcm"),
                ("-pc_krilu_type ilu0 -pc_krilu_scaling row", "rows"), ("-pc_krilu_device gpu", "cuda"),
                ("-pc_krilu_type iluk -pc_krilu_levels -1", "level of fill"), ("-pc_krilu_threads -2", "threads"),
                ("-pc_krilu_shift -1", "shift"), ("-pc_krilu_triangular tiled", "GPU")):
            with self.subTest(options=options):
                self.refused(krilu(options), OUTOFRANGE, "krilu: ", words)

    def test_a_zero_diagonal_fails_as_petscs_own_does(self):
        for kind in ("dilu", "ilu0", "jacobi", "dic", "ic0", "iluk", "ras", "ilut"):
            with self.subTest(kind=kind):
                system = SYMMETRIC if kind in ("dic", "ic0") else LATTICE
                ours, theirs = (krilu(f"-pc_krilu_type {kind} -zero_row 0", system),
                                probe("-pc_type ilu -zero_row 0", system))
                self.assertEqual(ours.status, 0, ours.text)
                self.assertEqual([s[:2] for s in ours.solves], [s[:2] for s in theirs.solves])
                self.assertEqual(ours.solves[0][1], "DIVERGED_PC_FAILED")
                code = CHOLESKY_ZERO_PIVOT if kind in ("dic", "ic0") else ZERO_PIVOT
                self.refused(krilu(f"-pc_krilu_type {kind} -zero_row 0 -ksp_error_if_not_converged", system), code)
        self.refused(probe("-pc_type ilu -zero_row 0 -ksp_error_if_not_converged"), ZERO_PIVOT)

    def test_its_sentence_names_the_row_and_the_remedy_in_petscs_words(self):
        words = ("row 1 ", "-pc_krilu_shift", "-pc_krilu_type jacobi")
        self.refused(krilu("-zero_row 0 -ksp_error_if_not_converged"), ZERO_PIVOT, *words)
        view = krilu("-zero_row 0 -ksp_view").text
        self.assertIn("PC failed due to", krilu("-zero_row 0 -ksp_converged_reason").text)
        for word in words:
            self.assertIn(word, view)
        self.refused(krilu("-zero_row 0 -ksp_error_if_not_converged", LATTICE, 1, "bjacobi"), ZERO_PIVOT,
                     "-sub_pc_krilu_shift")
        self.converged(krilu("-zero_row 0 -pc_krilu_shift 0.1"))

    def test_a_missing_diagonal_fails_too(self):
        self.assertEqual(krilu("-drop_diagonal 0").solves[0][1], "DIVERGED_PC_FAILED")

    def test_inside_bjacobi_on_two_ranks_a_zero_diagonal_fails_as_petscs_own_does(self):
        for inside in ("bjacobi", "asm"):
            ours = krilu("-zero_row 0", LATTICE, 2, inside)
            theirs = probe(f"-pc_type {inside} -sub_pc_type ilu -zero_row 0", LATTICE, 2)
            self.assertEqual([s[:2] for s in ours.solves], [s[:2] for s in theirs.solves], ours.text)
            self.assertEqual(ours.status, theirs.status)

    def test_values_that_mend_a_zero_diagonal_are_taken(self):
        r = krilu("-zero_row 0 -steps 2 -set_operators -ksp_view")  # without, PETSc does not ask a PC that failed again
        self.assertEqual([s[1] for s in r.solves], ["DIVERGED_PC_FAILED", "CONVERGED_RTOL"], r.text)
        self.assertEqual(r.counts, [(1, 0), (1, 1)], r.text)

    def test_nan_is_refused_with_its_row(self):
        self.refused(krilu("-nan_row 6"), WRONG, "row 7")

    def test_other_types_of_matrix_are_refused(self):
        for kind in ("baij", "sbaij", "dense"):
            options = f"-mat_type {kind}" + (" -mat_ignore_lower_triangular" if kind == "sbaij" else "")
            self.refused(krilu(options, SYMMETRIC), SUP, f"seq{kind}", "aij")

    def test_an_unsymmetric_matrix_is_refused_by_dic(self):
        self.refused(krilu("-pc_krilu_type dic"), WRONG, "symmetric", "dilu")

    def test_the_transpose_is_not_there(self):
        self.refused(krilu("-transpose"), SUP, "transpose")


def tutorials():
    where = [os.environ.get("KRILU_PETSC_EXAMPLES", "")]
    if "PETSC_DIR" in os.environ:
        where += [os.path.join(os.environ["PETSC_DIR"], below) for below in ("src", "share/petsc/examples/src")]
    where += sorted(glob.glob("/usr/share/petsc/*/share/petsc/examples/src"))
    return next((w for w in where if w and os.path.exists(os.path.join(w, "ksp/ksp/tutorials/ex2.c"))), None)


@unittest.skipUnless(tutorials(), "PETSc's tutorials are not here: Debian has them in libpetsc3.18-dev-examples")
class Tutorials(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "PETSc"], check=True, text=True,
                               stdout=subprocess.PIPE)
        more = os.environ.get("KRILU_PETSC_CFLAGS", "")
        for name in ("ksp/ksp/tutorials/ex2", "ksp/ksp/tutorials/ex23", "snes/tutorials/ex19"):
            subprocess.run([COMPILER, "-O1", "-w", *shlex.split(more), os.path.join(tutorials(), name + ".c"),
                            "-o", os.path.join(cls.folder.name, os.path.basename(name)),
                            *shlex.split(flags.stdout), "-lm"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def tutorial(self, name, options, ranks):
        status, text = run(os.path.join(self.folder.name, name),
                           f"-dll_append {PLUGIN} -ksp_converged_reason {options}", ranks)
        self.assertEqual(status, 0, text)
        self.assertNotIn("ERROR", text)
        iterations = [int(i) for i in re.findall(r"Linear solve converged due to \S+ iterations (\d+)", text)]
        self.assertTrue(iterations, text)
        return iterations, text

    def compare(self, name, options, check):
        for ranks, pc in ((1, ""), (1, "asm"), (2, "bjacobi"), (2, "asm")):
            with self.subTest(ranks=ranks, pc=pc):
                sub = "sub_" if pc else ""
                outer = f"{options} -pc_type {pc} -sub_pc_type " if pc else f"{options} -pc_type "
                theirs = self.tutorial(name, outer + "ilu", ranks)
                ilu0 = self.tutorial(name, f"{outer} krilu -{sub}pc_krilu_type ilu0", ranks)
                dilu = self.tutorial(name, f"{outer} krilu", ranks)
                self.assertEqual(ilu0[0], theirs[0])
                check(theirs[1], ilu0[1])
                check(theirs[1], dilu[1])
                self.assertLess(sum(dilu[0]), 1.2 * sum(theirs[0]) + 2)

    def test_ksp_ex2(self):
        def check(theirs, ours):
            errors = [float(re.search(r"Norm of error (\S+)", text).group(1)) for text in (theirs, ours)]
            self.assertLess(errors[1], 1.5 * errors[0])
        self.compare("ex2", "-m 30 -n 40", check)

    def test_ksp_ex23(self):
        self.compare("ex23", "-n 300", lambda theirs, ours: None)

    def test_snes_ex19(self):
        def check(theirs, ours):
            steps = [re.search(r"Number of SNES iterations = (\d+)", text).group(1) for text in (theirs, ours)]
            self.assertEqual(*steps)
        self.compare("ex19", "-da_refine 3", check)

    def test_snes_ex19_analyses_once(self):
        text = self.tutorial("ex19", "-da_refine 3 -pc_type krilu -snes_view", 1)[1]
        self.assertRegex(text, r"analyses 1, factorisations 2,")


if __name__ == "__main__":
    PLUGIN, PROBE, COMPILER, MPIRUN = [os.path.abspath(a) if os.path.exists(a) else a for a in sys.argv[1:5]]
    unittest.main(argv=sys.argv[:1] + sys.argv[5:], verbosity=2)
