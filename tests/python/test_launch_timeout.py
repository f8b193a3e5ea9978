"""smelt.launch: time-outs, on the main thread and others."""

import functools
import os
import signal
import threading
import time

import numpy as np
import pytest
import smelt
from smelt.launch import launch_with_timeout


def on_main(function):
    return function()


def on_thread(function):
    """function() on another thread: its result or exception here."""
    outcome = []

    def run():
        try:
            outcome.append((function(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    result, error = outcome[0]
    if error:
        raise error
    return result


both_threads = pytest.mark.parametrize("where", [on_main, on_thread])


def spin(seconds=60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return "done"


@both_threads
def test_what_is_quick_returns_its_result(where):
    assert where(lambda: launch_with_timeout(lambda x, y=1: (x, y), (2,), {"y": 3}, timeout_seconds=60)) == (2, 3)
    assert where(lambda: launch_with_timeout(spin, (0.01,), timeout_seconds=60)) == "done"


@both_threads
def test_python_that_runs_too_long_is_stopped(where):
    began = time.monotonic()
    with pytest.raises(TimeoutError) as caught:
        where(lambda: launch_with_timeout(spin, (), timeout_seconds=0.15))
    assert 0.15 <= time.monotonic() - began < 100
    assert str(caught.value) == "spin ran longer than the time-out of 0.15 s and was stopped"


@both_threads
def test_except_exception_does_not_hide_a_timeout(where):
    def stubborn():
        while True:
            try:
                spin(0.01)
            except Exception:
                pass

    with pytest.raises(TimeoutError, match="stubborn ran longer"):
        where(lambda: launch_with_timeout(stubborn, (), timeout_seconds=0.1))


def test_waiting_is_ended_on_the_main_thread():
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        launch_with_timeout(time.sleep, (30,), timeout_seconds=0.1)
    assert time.monotonic() - began < 100


@both_threads
def test_an_exception_passes_through(where):
    with pytest.raises(ZeroDivisionError):
        where(lambda: launch_with_timeout(lambda: 1 / 0, (), timeout_seconds=60))


@both_threads
def test_nothing_strikes_later(where):
    """Calls that end at about their time: each returns or raises TimeoutError, and nothing comes behind it."""
    def many():
        outcomes = set()
        for i in range(60):
            try:
                outcomes.add(launch_with_timeout(spin, (0.004,), timeout_seconds=0.002 + 0.0001 * (i % 40)))
            except TimeoutError:
                outcomes.add("late")
            spin(0.001)
        return outcomes

    assert where(many) <= {"done", "late"}


@both_threads
def test_the_inner_of_two_timeouts_strikes_first(where):
    def outer():
        with pytest.raises(TimeoutError, match="0.05 s"):
            launch_with_timeout(spin, (), timeout_seconds=0.05)
        return spin()

    with pytest.raises(TimeoutError, match="outer ran longer than the time-out of 0.3 s"):
        where(lambda: launch_with_timeout(outer, (), timeout_seconds=0.3))


@both_threads
def test_the_outer_of_two_timeouts_may_strike_first(where):
    def outer():
        launch_with_timeout(spin, (), timeout_seconds=60)

    began = time.monotonic()
    with pytest.raises(TimeoutError, match="outer ran longer than the time-out of 0.2 s"):
        where(lambda: launch_with_timeout(outer, (), timeout_seconds=0.2))
    assert time.monotonic() - began < 100


@both_threads
def test_two_timeouts_at_the_same_time(where):
    """Both strike, in either order; the outer one's is what comes out, or the inner's, and nothing comes behind."""
    def many():
        for _ in range(30):
            with pytest.raises(TimeoutError):
                launch_with_timeout(lambda: launch_with_timeout(spin, (), timeout_seconds=0.0101), (),
                                    timeout_seconds=0.01)
            spin(0.001)
        return "nothing else"

    assert where(many) == "nothing else"


def test_a_forked_child_has_timeouts():
    with pytest.raises(TimeoutError):
        on_thread(lambda: launch_with_timeout(spin, (), timeout_seconds=0.05))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            on_thread(lambda: launch_with_timeout(spin, (), timeout_seconds=0.05))
        except TimeoutError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_many_threads_each_have_their_own():
    outcomes = []

    def run(seconds):
        try:
            outcomes.append((seconds, launch_with_timeout(spin, (1.5,), timeout_seconds=seconds)))
        except TimeoutError as error:
            outcomes.append((seconds, str(error)))

    threads = [threading.Thread(target=run, args=(seconds,)) for seconds in (0.1, 60, 0.15, 50, 0.05)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [(seconds, f"spin ran longer than the time-out of {seconds:g} s and was stopped")
                                for seconds in (0.05, 0.1, 0.15)] + [(50, "done"), (60, "done")]


def test_someone_elses_timer_is_kept():
    rang = []
    before = signal.signal(signal.SIGALRM, lambda *_: rang.append(time.monotonic()))
    try:
        began = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, 1.5)
        with pytest.raises(TimeoutError):
            launch_with_timeout(spin, (), timeout_seconds=0.1)
        assert not rang
        while not rang:
            spin(0.1)
        assert len(rang) == 1 and 1.4 < rang[0] - began < 100
        # It rings in time also where ours is later, and ours then goes on.
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.05)
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            launch_with_timeout(spin, (), timeout_seconds=1)
        assert 1 <= time.monotonic() - began < 100 and len(rang) > 2 and 0.05 < rang[1] - began < 0.99
        assert signal.getitimer(signal.ITIMER_REAL)[1] == 0.05
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("seconds, error", [(0, ValueError), (-1, ValueError), (float("inf"), ValueError),
                                            (float("nan"), ValueError), ("1", TypeError), (None, TypeError)])
def test_the_time_must_be_positive_and_finite(seconds, error):
    with pytest.raises(error, match="timeout_seconds: expected a"):
        launch_with_timeout(spin, (), timeout_seconds=seconds)


# ---- Kernels.


@pytest.fixture(scope="module")
def kernel():
    """Adds up x[1] until x[0] is above 0: never, for positive numbers."""
    return smelt.metal_kernel(name="endless", input_names=["x"], output_names=["out"],
                              source="float s = 0; while (x[0] > 0) s += x[1]; out[0] = s;")


def arguments(first):
    return dict(inputs=[np.array([first, 1], np.float32)], grid=(1, 1, 1), threadgroup=(1, 1, 1), output_shapes=[(1,)],
                output_dtypes=[smelt.float32])


@both_threads
@pytest.mark.parametrize("wrap", ["kernel", "partial", "function"])
def test_a_kernel_that_never_ends_is_stopped(kernel, where, wrap):
    launch = {"kernel": kernel, "partial": functools.partial(kernel), "function": lambda **more: kernel(**more)}[wrap]
    assert np.asarray(launch_with_timeout(launch, (), arguments(0), 60)[0]).tolist() == [0]
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        where(lambda: launch_with_timeout(launch, (), arguments(1), timeout_seconds=0.3))
    assert 0.3 <= time.monotonic() - began < 100
    # The device is free again.
    assert np.asarray(launch_with_timeout(launch, (), arguments(0), 60)[0]).tolist() == [0]


def test_a_shorter_timeout_of_the_call_is_kept(kernel):
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        launch_with_timeout(kernel, (), {**arguments(1), "timeout": 0.2}, timeout_seconds=60)
    assert time.monotonic() - began < 100


@both_threads
@pytest.mark.parametrize("wrap", ["kernel", "function"])
def test_a_gpu_is_free_again(kernel, where, wrap):
    """A launch within a timed function has what is left as its time-out there: nothing else would end it."""
    if "cuda:0" not in smelt.devices():
        pytest.skip("there is no GPU here")
    launch = {"kernel": kernel, "function": lambda **more: [np.asarray(out) for out in kernel(**more)]}[wrap]
    on_gpu = {"device": "cuda:0"}
    assert np.asarray(launch_with_timeout(launch, (), arguments(0) | on_gpu, 30)[0]).tolist() == [0]
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        where(lambda: launch_with_timeout(launch, (), arguments(1) | on_gpu, timeout_seconds=0.5))
    assert 0.5 <= time.monotonic() - began < 100
    assert np.asarray(launch_with_timeout(launch, (), arguments(0) | on_gpu, 30)[0]).tolist() == [0]
