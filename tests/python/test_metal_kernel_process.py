"""Kernels and the process around them: threads, signals, forks, memory."""
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from probe_kernels import F32, I, arguments_of, kernel_of

import smelt

# A background job of a shell starts with Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

ENDLESS = kernel_of("out[0] = 0; while (a > 0) out[0] += a;", name="endless")
SPINS = {"inputs": [1.0], "output_shapes": [(1,)], "output_dtypes": [F32], "grid": (1,), "threadgroup": (1,)}


def floats(*shape):
    return np.random.default_rng().standard_normal(shape).astype(np.float32)


# ---- Threads.


def test_16_threads_with_shared_and_own_kernels():
    shared = kernel_of(I + "out[i] = a[i] * N + 1;", name="many")
    bound_input = floats(333)
    bound = shared.bind(**arguments_of(bound_input), template=[("N", 3)])
    failures = []

    def work(number):
        try:
            own = kernel_of(I + f"out[i] = a[i] + {number % 4};", name="many")
            for round_ in range(30):
                a = floats(50 + number)
                np.testing.assert_allclose(own(**arguments_of(a))[0], a + np.float32(number % 4), rtol=1e-6, atol=1e-6)
                n = round_ % 3 + 1
                np.testing.assert_allclose(shared(**arguments_of(a), template=[("N", n)])[0], a * n + 1, rtol=1e-5,
                                           atol=1e-5)
                np.testing.assert_allclose(bound()[0], bound_input * 3 + 1, rtol=1e-5, atol=1e-5)
        except BaseException as failure:  # noqa: BLE001 - reported below
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_other_threads_run_while_a_kernel_does():
    """Without the GIL's release the counter would stand still until the time-out."""
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    with pytest.raises(TimeoutError):
        ENDLESS(**SPINS, timeout=0.3)
    during = counted[0]
    stop.set()
    thread.join()
    assert during >= 20


# ---- Signals.


class Alarmed(Exception):
    pass


@pytest.fixture
def alarm():
    """Sets a handler and an alarm; takes both back."""
    before = signal.getsignal(signal.SIGALRM)

    def set_alarm(handler, seconds, interval=0.0):
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, seconds, interval)

    yield set_alarm
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def raise_alarmed(number, frame):
    raise Alarmed


def test_ctrl_c_ends_a_kernel_without_end():
    for _ in range(2):
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        start = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            ENDLESS(**SPINS)
        assert time.perf_counter() - start < 100
        assert ENDLESS(**SPINS | {"inputs": [-1.0]})[0].item() == 0


def test_ctrl_c_ends_a_bound_kernel():
    bound = ENDLESS.bind(**SPINS)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        bound()


def test_a_handler_s_exception_ends_a_kernel(alarm):
    """Again and again with one handler, set anew each time: Python then has its own in front of ours."""
    for _ in range(3):
        alarm(raise_alarmed, 0.05)
        with pytest.raises(Alarmed):
            ENDLESS(**SPINS)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def test_a_handler_that_raises_nothing_lets_the_kernel_go_on(alarm):
    came = []
    kernel = kernel_of("float x = a; for (uint k = 0; k < N; k++) x = metal::fmod(x * 1.000001f + k, 3.0f); out[0] = x;")
    arguments = SPINS | {"inputs": [0.5], "template": [("N", 6_000_000)]}
    expected = kernel(**arguments)[0].item()
    alarm(lambda number, frame: came.append(number), 0.01)
    assert kernel(**arguments)[0].item() == expected
    assert came == [signal.SIGALRM]


def test_a_function_that_is_interrupted_says_what_its_arrays_hold(alarm):
    lib = smelt.library("kernel void endless(device float *out, constant float &a) { while (a > 0) out[0] += a; }")
    out = np.zeros(1, np.float32)
    lib.endless(out, -1)
    alarm(lambda number, frame: None, 0.05)
    with pytest.raises(RuntimeError, match="hold partial results"):
        lib.endless(out, 1, threads=1)
    alarm(raise_alarmed, 0.05)
    with pytest.raises(Alarmed):
        lib.endless(out, 1, threads=1)


def test_a_signal_that_came_before_is_seen_first(alarm):
    """Handlers that ran in the main thread before the launch do not end it."""
    alarm(lambda number, frame: None, 0.0005, 0.0005)
    a = floats(100)
    kernel = kernel_of(I + "out[i] = a[i] + 1;")
    for _ in range(300):
        np.testing.assert_array_equal(kernel(**arguments_of(a))[0], a + 1)


def test_other_threads_kernels_are_not_interrupted():
    results = []
    thread = threading.Thread(target=lambda: results.append(pytest.raises(TimeoutError, ENDLESS, **SPINS, timeout=0.4)))
    thread.start()
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        ENDLESS(**SPINS)
    thread.join()
    assert len(results) == 1


# ---- Forks.


def in_child(queue, a):
    kernel = kernel_of(I + "out[i] = a[i] * 5;", name="forked")
    queue.put((kernel(**arguments_of(a))[0], kernel_of(I + "out[i] = a[i] - 5;", name="forked")(**arguments_of(a))[0]))


def test_children_run_kernels():
    a = floats(3000)
    kernel = kernel_of(I + "out[i] = a[i] * 5;", name="forked")
    kernel(**arguments_of(a))  # the pool of threads is there when it forks
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=in_child, args=(queue, a)) for _ in range(2)]
    for child in children:
        child.start()
    for _ in children:
        first, second = queue.get(timeout=1500)
        np.testing.assert_array_equal(first, a * 5)
        np.testing.assert_array_equal(second, a - 5)
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    np.testing.assert_array_equal(kernel(**arguments_of(a))[0], a * 5)


def test_ctrl_c_in_a_child_that_a_thread_forked():
    program = """
        import os, signal, threading
        import smelt
        signal.signal(signal.SIGINT, signal.default_int_handler)
        kernel = smelt.metal_kernel("endless", ["a"], ["out"], "out[0] = 0; while (a > 0) out[0] += a;")
        arguments = dict(output_shapes=[(1,)], output_dtypes=[smelt.float32], grid=(1,), threadgroup=(1,))
        kernel(inputs=[-1.0], **arguments)
        def work():
            child = os.fork()
            if child == 0:
                threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
                try:
                    kernel(inputs=[1.0], timeout=20, **arguments)
                except KeyboardInterrupt:
                    os._exit(7)
                os._exit(1)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=1500,
                          check=False, env=os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(smelt.__file__))})
    assert done.stdout.strip() == "7", done.stderr


# ---- Memory.


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def fails(call):
    try:
        call()
    except (ValueError, TypeError, smelt.Error):
        return
    raise AssertionError("the call did not fail")


def test_calls_keep_nothing():
    """What one call of a round kept would be 8 MB after those that are measured: each has an array of 10 KB."""
    a, into = floats(2500), np.zeros(2500, np.float32)
    kernel = kernel_of(I + "out[i] = T(a[i]) + 1;", name="kept")
    options = {"template": [("T", F32)]}
    bound, bound_into = kernel.bind(**arguments_of(a, **options)), kernel.bind(inputs=[a], out=[into], grid=(2500,),
                                                                              threadgroup=(64,), **options)
    lib = smelt.library("kernel void f(device float *out, constant float *b, uint i [[thread_position_in_grid]]) "
                        "{ out[i] = b[i % 500]; }")
    numbers = [1.0] * 500

    def round_():
        kernel(**arguments_of(a, **options))
        kernel(**arguments_of(a[::-1], **options))
        kernel(**arguments_of(smelt.array(a), **options))
        kernel(**arguments_of(a, **options), init_value=[2.0])
        bound()
        bound(a[::-1])
        bound_into()
        bound(out=[np.zeros(2500, np.float32)])
        kernel.bind(**arguments_of(a, **options))
        lib.f(into, numbers)
        kernel_of(I + "out[i] = T(a[i]) + 1;", name="kept")
        fails(lambda: kernel(**arguments_of(floats(2500)), template=[("T", 2.5)]))
        fails(lambda: kernel(**arguments_of(floats(2500), **options) | {"grid": (0, 1, 1)}))
        fails(lambda: kernel(**arguments_of(floats(2500), **options), out=[floats(2500)[::2]]))
        fails(lambda: kernel(**arguments_of(floats(2500), **options), output_kind="none"))
        fails(lambda: bound(floats(2499)))
        fails(lambda: lib.f(floats(2500), [*numbers, "x"]))
        fails(lambda: kernel.bind(**arguments_of(floats(2500), **options) | {"threadgroup": (2000,)}))

    for _ in range(100):
        round_()
    gc.collect()
    before = resident_bytes()
    for _ in range(800):
        round_()
    gc.collect()
    assert resident_bytes() - before < 4e6


def test_references_are_balanced():
    a, name, shape, dtype = floats(10), "counted_" + str(os.getpid()), (10,), np.dtype("float32")
    kernel = kernel_of(I + "out[i] = a[i];", name=name)
    values = [a, shape, dtype, kernel, F32]
    template = [("T", dtype), ("N", 3)]

    def calls():
        kernel(inputs=[a], output_shapes=[shape], output_dtypes=[dtype], grid=shape, threadgroup=shape, template=template)
        kernel.bind(inputs=[a], output_shapes=[shape], output_dtypes=[dtype], grid=shape, threadgroup=shape)()
        fails(lambda: kernel(inputs=[a], output_shapes=[shape], output_dtypes=[dtype], grid=shape, threadgroup=shape, b=3))

    calls()
    before = [sys.getrefcount(value) for value in values]
    for _ in range(100):
        calls()
    assert [sys.getrefcount(value) for value in values] == before
