#!/usr/bin/env python3
"""`smelt bench matmul`: every kernel of the ladder is right and timed, choices are checked, the table and the picture are as
promised; on a GPU whose kernels do nothing every kernel is wrong."""
import json
import os
import xml.etree.ElementTree

from support import FULL, SMELT, TIERS, expect, expect_equal, run_tests

ALGORITHMS = ["naive", "coalescing", "tiled", "tiled_register", "block_tiled", "block_tiled_vectorized", "tensor_core", "best"]


def run_json(scratch, *arguments, **changes):
    done = scratch.run(["bench", "matmul", "--quick", "--json", *arguments], timeout=300, SMELT_TIERS=TIERS, **changes)
    return done, json.loads(done.stdout) if done.stdout else []


def test_every_step_is_right(scratch):
    for dtype in ("float32", "bfloat16") if FULL else ("bfloat16",):
        done, rows = run_json(scratch, "--device", "cpu", "--sizes", "100x70x30", "--dtype", dtype)
        expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
        expect_equal({row["job"] for row in rows}, {f"product-100x70x30-{dtype}"}, "the jobs")
        steps = [row for row in rows if row["variant"].startswith("cpu/") and row.get("elements") and "Open" not in row["variant"]]
        expect_equal([row["variant"] for row in steps], ["cpu/" + name for name in [*ALGORITHMS, "a @ b"]], "the steps")
        for row in steps:
            expect(row["median_s"] > 0 and row["elements"] == 7000, f"no time in {row}")
            expect(abs(row["per_s"] * row["median_s"] - 2 * 100 * 70 * 30) < 1, f"not the rate: {row}")


def expect_no_overlaps(tree):
    """Texts that begin at one place are at least a line apart."""
    places = sorted((float(node.get("x")), float(node.get("y")), node.text) for node in tree.iter()
                    if node.tag.endswith("text") and not node.get("transform"))
    for (x, y, text), (next_x, next_y, next_text) in zip(places, places[1:]):
        expect(x != next_x or next_y - y >= 12, f"{text!r} and {next_text!r} overlap")


def test_chosen_steps_in_a_table_and_a_picture(scratch):
    picture = os.path.join(scratch.out, "ladder.svg")
    done = scratch.run(["bench", "matmul", "--quick", "--device", "cpu", "--sizes", "64,96", "--algorithm",
                        "naive,coalescing,tiled,best", "--plot", picture], SMELT_TIERS=TIERS)
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
    lines = done.stdout.splitlines()
    for job in ("product-64x64x64-float32", "product-96x96x96-float32"):
        at = lines.index(job)
        expect_equal([word.strip() for word in lines[at + 2].split("|")[1:6]],
                     ["name", "met (ms)", "iters", "GFLOPS/s", "GElems/s"], "the columns")
        names = [line.split("|")[1].strip() for line in lines[at + 4:at + 12] if line.startswith("| cpu/")]
        expect_equal([name for name in names if name[4:] in ALGORITHMS], ["cpu/naive", "cpu/coalescing", "cpu/tiled", "cpu/best"], "the steps")
    tree = xml.etree.ElementTree.parse(picture).getroot()
    texts = [node.text for node in tree.iter() if node.tag.endswith("text")]
    expect(texts.count("cpu/best") >= 2 and "product-64x64x64-float32" in texts, f"not in the picture: {texts}")
    expect(any(text.startswith("Rate in GFLOP/s, ") and text.endswith(" scale") for text in texts), f"no axis: {texts}")
    expect_equal(texts.count("GFLOP/s, logarithmic scale"), 2, "the vertical axes of rooflines")
    expect_no_overlaps(tree)


def test_several_products_are_those_of_matmul(scratch):
    done, rows = run_json(scratch, "--device", "cpu", "--sizes", "5x30x20x10", "--algorithm", "best")
    expect_equal((done.returncode, done.stderr), (0, ""), "status and messages")
    expect_equal({row["job"] for row in rows}, {"product-5x30x20x10-float32"}, "the jobs")
    steps = [row for row in rows if row["variant"].startswith("cpu/") and row.get("elements") and "Open" not in row["variant"]]
    expect_equal([row["variant"] for row in steps], ["cpu/a @ b"], "the steps")
    expect_equal(steps[0]["elements"], 5 * 30 * 20, "the elements")
    expect(abs(steps[0]["per_s"] * steps[0]["median_s"] - 2 * 5 * 30 * 20 * 10) < 1, f"not the rate: {steps[0]}")


SIZES = "like 1024, 1000x517x300 (M, N, K) or 64x256x256x256 (products, M, N, K), with commas"


def test_choices_are_checked(scratch):
    for arguments, message in (
            (["--sizes", "12,x"], "--sizes is '12,x', expected up to 16 sizes " + SIZES),
            (["--sizes", "1x2"], "--sizes is '1x2', expected up to 16 sizes " + SIZES),
            (["--sizes", "1x2x3x4x5"], "--sizes is '1x2x3x4x5', expected up to 16 sizes " + SIZES),
            (["--dtype", "int8"], "--dtype is 'int8', expected float32, float16 or bfloat16"),
            (["--algorithm", "tiled,fast"], "--algorithm: 'fast' is unknown; expected some of " + " ".join(ALGORITHMS)),
            (["--device", "tpu"], "--device is 'tpu', expected cpu or cuda")):
        done = scratch.run(["bench", "matmul", *arguments])
        expect_equal((done.returncode, done.stderr.strip(), done.stdout), (2, "smelt: " + message, ""), " ".join(arguments))
    done = scratch.run(["bench", "matmul", "--quick", "--device", "cpu", "--sizes", "16", "--algorithm", "naive", "--plot", "/no/such/folder/x.svg"])
    expect_equal(done.returncode, 3, "status")
    expect("--plot is '/no/such/folder/x.svg': No such file" in done.stderr, f"not the reason: {done.stderr}")


def test_a_gpu_that_is_asked_for_must_be_there(scratch):
    done, rows = run_json(scratch, "--device", "cuda", SMELT_CUDA_DRIVER="/no/such/driver")
    expect_equal((done.returncode, rows), (3, []), "status and rows")
    expect("/no/such/driver" in done.stderr, f"not the reason: {done.stderr}")


def expect_bounds(rows):
    """The bounds of a roofline are measured: the memory's speed and the peak."""
    for name, unit in (("cuda/copy", "B"), ("cuda/peak", "FLOP")):
        found = [row for row in rows if row["variant"] == name]
        expect(len(found) == 1 and found[0].get("per_s", 0) > 0 and found[0]["per_s_unit"] == unit, f"no {name}: {found}")


def test_kernels_that_do_nothing_are_wrong(scratch):
    fake = os.path.join(os.path.dirname(SMELT), "..", "tests", "libfakecuda.so")
    if not os.path.exists(fake):
        return f"skipped: no {fake}"
    algorithms = ALGORITHMS if FULL else ALGORITHMS[::3]
    chosen = [] if FULL else ["--algorithm", ",".join(algorithms)]
    done, rows = run_json(scratch, "--device", "cuda", "--sizes", "64", *chosen, SMELT_CUDA_DRIVER=fake)
    expect_equal(done.returncode, 1, f"the exit status ({done.stderr})")
    wrong = [row["variant"] for row in rows if row.get("error", "").startswith("wrong result: ")]
    expect_equal(wrong, ["cuda/" + name for name in algorithms], "the steps that are wrong")
    expect_bounds(rows)
    done, rows = run_json(scratch, "--device", "cuda", "--sizes", "64", "--dtype", "bfloat16", "--algorithm", "naive", SMELT_CUDA_DRIVER=fake)
    expect_bounds(rows)
    return None


run_tests(globals())
