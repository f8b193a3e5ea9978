"""smelt.autotune: what is chosen, stored and skipped."""

import multiprocessing
import sqlite3
import time

import numpy as np
import pytest
import smelt
from smelt import Config, autotune


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("SMELT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def rows_of(cache):
    with sqlite3.connect(cache / "tuning.sqlite") as connection:
        return connection.execute("SELECT key, config FROM results ORDER BY key").fetchall()


def sleeper(calls, seconds=(0.02, 0.001, 0.005), **settings):
    @autotune([Config({"way": i}) for i in range(len(seconds))], ["n"], **settings)
    def sleep(n, way):
        calls.append((n, way))
        time.sleep(seconds[way])
        return smelt.full((2,), n)

    return sleep


def test_the_fastest_is_chosen_once_for_each_key(cache):
    calls = []
    function = sleeper(calls)
    function(3)
    assert {way for _, way in calls} == {0, 1, 2} and function.best_config(3) == Config({"way": 1})
    calls.clear()
    function(3)
    assert calls == [(3, 1)]
    function(4)
    assert len({way for _, way in calls}) == 3
    assert rows_of(cache) == [("n=3", "way=1"), ("n=4", "way=1")]


def test_choices_outlive_the_process_and_belong_to_the_machine(cache):
    sleeper([])(3)
    calls = []
    sleeper(calls)(3)
    assert calls == [(3, 1)]
    with sqlite3.connect(cache / "tuning.sqlite") as connection:
        connection.execute("UPDATE results SET machine = 'another'")
    calls.clear()
    sleeper(calls)(3)
    assert len(calls) > 3


def test_arrays_count_by_dtype_and_shape(cache):
    @autotune([Config({"scale": 2})], ["x"])
    def multiply(x, y, scale):
        return x * scale + y

    for n in (3, 4):
        multiply(smelt.ones((n,)), smelt.ones((n,)))
    multiply(smelt.ones((3,)), smelt.ones((3,)).astype(smelt.float16))
    assert [key.replace("smelt.", "") for key, _ in rows_of(cache)] == [
        "x=float32[3], y:float16", "x=float32[3], y:float32", "x=float32[4], y:float32"]


def test_what_fails_is_wrong_or_slow_is_skipped_with_a_note():
    @autotune([Config({"way": way}) for way in ("fails", "wrong", "right", "slow")], ["x"], reference=lambda x: x + x)
    def double(x, way):
        if way == "fails":
            raise smelt.CompileError("line 3: error")
        if way == "slow":
            time.sleep(0.3)
        return x * (3 if way == "wrong" else 2)

    x = smelt.array(np.arange(5, dtype=np.float32))
    assert np.array_equal(double(x), np.arange(5) * 2)
    assert [(config.kwargs["way"], note.split(":")[0]) for config, note in double.notes] == [
        ("fails", "CompileError"), ("wrong", "wrong result"), ("slow", "slow")]


def test_the_budget_ends_the_search():
    calls = []
    function = sleeper(calls, budget=0)
    function(1)
    assert {way for _, way in calls} == {0}
    assert [note for _, note in function.notes] == ["the time budget is spent"] * 2


def test_an_interrupt_stores_nothing(cache):
    @autotune([Config({"way": 0})], ["n"])
    def stop(n, way):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop(1)
    assert not (cache / "tuning.sqlite").exists() or rows_of(cache) == []


def test_none_that_works_is_an_error():
    @autotune([Config({"way": 0}), Config({"way": 1})], ["n"])
    def fail(n, way):
        raise ValueError(f"not {way}")

    with pytest.raises(RuntimeError, match="none of the 2 candidates of 'fail' works; way=0: ValueError: not 0"):
        fail(1)


@pytest.mark.parametrize("configs, key, message", [
    ([], ["n"], "'f' has no configs, expected one or more"),
    ([Config({"tile": 1})], ["n"], "'tile' is not a parameter of 'f', expected one of n, way"),
    ([Config({"way": 1})], ["m"], "'m' is not a parameter of 'f', expected one of n, way")])
def test_settings_are_checked(configs, key, message):
    def f(n, way):
        pass

    with pytest.raises(ValueError, match=message):
        autotune(configs, key)(f)


def test_a_damaged_file_costs_only_the_storage(cache, capfd):
    cache.mkdir(mode=0o700)
    (cache / "tuning.sqlite").write_text("this is no database, however long it goes on" * 100)
    calls = []
    function = sleeper(calls)
    function(2)
    assert function.best_config(2) == Config({"way": 1}) and "tuning.sqlite" in capfd.readouterr().err


def tune_many(first):
    for n in range(first, first + 10):
        sleeper([], seconds=(0.0, 0.0))(n)


def test_two_processes_lose_nothing_of_each_other(cache):
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=tune_many, args=(first,)) for first in (100, 200)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert [key for key, _ in rows_of(cache)] == [f"n={n}" for n in [*range(100, 110), *range(200, 210)]]


def test_a_kernel_with_template_parameters():
    source = "uint i = thread_position_in_grid.x; float sum = 0; for (uint j = 0; j < STEPS; j++) sum += inp[i]; out[i] = sum / STEPS;"
    kernel = smelt.metal_kernel(name="steps", input_names=["inp"], output_names=["out"], source=source)

    @autotune([Config({"steps": steps}) for steps in (4096, 1)], ["x"], reference=lambda x: x)
    def same(x, steps):
        return kernel(inputs=[x], template=[("STEPS", steps)], grid=(x.size, 1, 1), threadgroup=(64, 1, 1),
                      output_shapes=[x.shape], output_dtypes=[x.dtype])[0]

    x = smelt.ones((65536,))
    assert np.array_equal(same(x), x) and same.best_config(x) == Config({"steps": 1})
