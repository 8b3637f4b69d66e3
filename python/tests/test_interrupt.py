# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, other threads, forked processes."""
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import krilu
from conftest import convection, poisson, right_side


def long_solve():
    """Some ten seconds and more of plain conjugate gradients, were it not stopped."""
    n = 700
    return poisson(n), right_side(n * n), {"solver": "cg", "precond": "none", "rtol": 1e-15, "max_iterations": 10**6}


def test_ctrl_c_ends_a_solve_at_once_and_the_solver_lives_on():
    a, b, options = long_solve()
    solver = krilu.Solver(**options)
    solver.setup(a)
    sent = []

    def press():  # runs at all only where the solve has released Python's lock
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        solver.solve(b)
    assert time.perf_counter() - sent[0] < 1.0
    timer.join()
    solver.set_tolerances(0.5)
    assert solver.solve(b)[1].converged


def test_ctrl_c_ends_the_wait_for_a_turn():
    a, b, options = long_solve()
    solver = krilu.Solver(**{**options, "max_iterations": 50})
    solver.setup(a)
    fastest = min(solver.solve(b)[1].seconds.solve for _ in range(3))
    solver = krilu.Solver(**{**options, "max_iterations": int(4 / (fastest / 50))})  # some four seconds at least
    solver.setup(a)
    done = []
    thread = threading.Thread(target=lambda: done.append(solver.solve(b)[1]))
    thread.start()
    time.sleep(0.2)
    for wait in (lambda: solver.counts, lambda: solver.bytes, lambda: solver.explanation, lambda: solver.shape,
                 lambda: solver.set_tolerances(0.5), lambda: solver.solve(b), lambda: solver.update(a)):
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
        start = time.perf_counter()
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            wait()
        assert time.perf_counter() - start < 2.0 and thread.is_alive()  # the other thread's solve goes on
        timer.join()
    thread.join()
    assert done[0].status == "max_iterations" and solver.counts == (1, 1, 1)


def test_ctrl_c_reaches_the_drop_ins_too():
    a, b, _ = long_solve()
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        krilu.cg(a, b, rtol=1e-15)


def test_any_handler_that_raises_ends_a_solve():
    a, b, options = long_solve()

    class Late(Exception):
        pass

    def handler(number, frame):
        raise Late

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(Late):
            krilu.solve(a, b, **options)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_handler_that_raises_nothing_does_not_disturb():
    a = poisson(250)
    b = right_side(62500)
    options = {"solver": "cg", "precond": "none", "rtol": 1e-8}
    expected, _ = krilu.solve(a, b, **options)
    seen = []
    refused = []
    solver = krilu.Solver(**options)
    solver.setup(a)

    def handler(number, frame):
        seen.append(number)
        assert krilu.solve(poisson(5), right_side(25))[1].converged  # another solver may be used meanwhile
        try:
            solver.solve(b)
        except krilu.Error as e:
            refused.append(str(e))

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        x, report = solver.solve(b)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert report.converged and np.array_equal(x, expected)
    if not seen:
        pytest.skip("the solve was over before the signal")
    assert refused and "signal handler" in refused[0]


def test_python_goes_on_while_a_thread_solves():
    a, b, options = long_solve()
    options["max_iterations"] = 100
    done = threading.Event()

    def work():
        krilu.solve(a, b, **options)
        done.set()

    thread = threading.Thread(target=work)
    count = 0
    thread.start()
    while not done.is_set():
        time.sleep(0.001)
        count += 1
    thread.join()
    assert count > 20, "the main thread stood still"


def test_threads_that_share_a_solver_take_turns():
    a = convection(30)
    solver = krilu.Solver(solver="bicgstab", precond="dilu", rtol=1e-10)
    solver.setup(a)
    rights = [right_side(900, seed) for seed in range(8)]
    expected = [solver.solve(b)[0] for b in rights]
    found = [None] * 8

    def work(k):
        for _ in range(5):
            found[k] = solver.solve(rights[k])[0]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    main = [solver.solve(b)[0] for b in rights]
    for t in threads:
        t.join()
    for k in range(8):
        assert np.array_equal(found[k], expected[k]) and np.array_equal(main[k], expected[k])
    assert solver.counts.solves == 8 + 40 + 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_solves_too():
    script = textwrap.dedent("""
        import multiprocessing, warnings
        warnings.simplefilter("ignore")
        import numpy as np, scipy.sparse as sp, krilu
        a = sp.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(50000, 50000)).tocsr()
        b = np.ones(50000)
        x, _ = krilu.solve(a, b)
        def work(_):
            return bool(np.array_equal(krilu.solve(a, b)[0], x))
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(work, range(4)))
        """)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0 and run.stdout.strip() == "[True, True, True, True]", run.stderr


def test_a_process_ends_while_a_thread_solves():
    script = textwrap.dedent("""
        import threading, time, numpy as np, scipy.sparse as sp, krilu
        a = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(300000, 300000)).tocsr()
        t = threading.Thread(target=lambda: krilu.solve(a, np.ones(300000), solver="cg", precond="none", rtol=1e-15,
                                                        max_iterations=10**6), daemon=True)
        t.start()
        time.sleep(0.5)
        print("out")
        """)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and run.stdout == "out\n", run.stderr
