"""DLPack's capsules in both directions, and their streams: on the host with any library, on GPUs over the fake driver."""
import ctypes
import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import smelt

DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32",
          "complex64", "float64"]

capsule_name = ctypes.pythonapi.PyCapsule_GetName
capsule_name.restype, capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]


class Producer:
    """Another library's array: NumPy's, given away by __dlpack__ in this library's manner."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device, self.asked = array, device, []

    def __dlpack__(self, **keywords):
        self.asked.append(keywords)
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.device


class OldProducer(Producer):
    """One that has not heard of versions."""

    def __dlpack__(self, stream=None):
        self.capsule = self.array.__dlpack__()
        return self.capsule


# ---- Into smelt.

@pytest.mark.parametrize("make", [Producer, OldProducer])
@pytest.mark.parametrize("dtype", DTYPES)
def test_capsules_are_taken_over(make, dtype):
    x = np.arange(12).reshape(3, 4).astype(dtype)[:, ::-2]
    producer = make(x)
    a = smelt.from_dlpack(producer)
    assert a.dtype == dtype and a.strides == x.strides and np.shares_memory(np.asarray(a), x)
    np.testing.assert_array_equal(np.asarray(a), x)
    if make is Producer:
        assert producer.asked == [{"max_version": (1, 1)}]
    else:
        assert capsule_name(producer.capsule) == b"used_dltensor"


def test_read_only_tensors_are_copied_unless_a_view_is_insisted_on():
    x = np.arange(3, dtype=np.int32)
    x.flags.writeable = False
    a = smelt.from_dlpack(Producer(x))
    np.asarray(a)[0] = 5
    assert x.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="from_dlpack: the array given is read-only; expected one that can be written"):
        smelt.from_dlpack(Producer(x), copy=False)


def test_from_dlpack_copies_and_moves_when_it_is_told_to():
    x = np.arange(3, dtype=np.int32)
    assert not np.shares_memory(np.asarray(smelt.from_dlpack(x, copy=True)), x)
    assert np.shares_memory(np.asarray(smelt.from_dlpack(x, device="cpu", copy=False)), x)
    with pytest.raises(smelt.NoDeviceError):
        smelt.from_dlpack(x, device="nonsense")


class Broken(Producer):
    def __dlpack__(self, **keywords):
        return self.array


class Failing(Producer):
    def __dlpack__(self, **keywords):
        raise RuntimeError("out of tensors\nand much else")


class Interrupted(Producer):
    def __dlpack__(self, **keywords):
        raise KeyboardInterrupt


class WithoutDevice(Producer):
    def __dlpack_device__(self):
        return 7


@pytest.mark.parametrize("given, error, message", [
    (Broken(3), TypeError, r"from_dlpack: its __dlpack__\(\) returned 3, expected a capsule called 'dltensor_versioned'"),
    (Broken(np.zeros(3).__array_struct__), TypeError, "expected a capsule called"),
    (Failing(3), TypeError, "from_dlpack: this Failing does not expose its memory: out of tensors$"),
    (WithoutDevice(3), TypeError, "did not return a pair of numbers"),
    (Interrupted(3), KeyboardInterrupt, ""),
    (Producer(np.zeros(2), device=(2, 77)), smelt.NoDeviceError, ""),
    ([1, 2], TypeError, "expected an object with __dlpack__, got <class 'list'>"),
    (3, TypeError, "expected an object with __dlpack__"),
])
def test_producers_that_break_the_rules(given, error, message):
    with pytest.raises(error, match=message):
        smelt.from_dlpack(given)


def test_the_producers_own_error_is_the_cause():
    with pytest.raises(TypeError) as info:
        smelt.from_dlpack(Failing(3))
    assert isinstance(info.value.__cause__, RuntimeError)


def test_capsules_are_used_once():
    capsule = np.zeros(3).__dlpack__(max_version=(1, 0))
    assert smelt.from_dlpack(Broken(capsule)).shape == (3,)
    assert capsule_name(capsule) == b"used_dltensor_versioned"
    with pytest.raises(TypeError, match="expected a capsule called"):
        smelt.from_dlpack(Broken(capsule))


def test_tensors_of_dtypes_without_arrays_stay_the_producers():
    capsule = np.zeros(3, np.complex128).__dlpack__()
    with pytest.raises(TypeError, match="from_dlpack: DLPack tensor: dtype complex128 is not supported; expected"):
        smelt.from_dlpack(Broken(capsule))
    assert capsule_name(capsule) == b"dltensor"


def test_the_deleter_runs_when_the_last_view_goes_on_any_thread():
    import weakref

    class Owned(np.ndarray):
        pass

    x = np.zeros(8, np.float32).view(Owned)
    gone = weakref.ref(x)
    kept = [smelt.from_dlpack(Producer(x))[2:4]]
    del x
    gc.collect()
    assert gone() is not None
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()
    assert gone() is None


# ---- Out of smelt.

@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_takes_our_capsules(dtype):
    a = smelt.array(np.arange(12).reshape(3, 4).astype(dtype), dtype=dtype)[:, ::-2]
    x = np.from_dlpack(a)
    assert x.dtype == dtype and x.strides == a.strides and np.shares_memory(x, np.asarray(a)) and x.flags.writeable
    np.testing.assert_array_equal(x, np.asarray(a))


def test_versions_are_the_consumers_choice():
    a = smelt.array([1, 2])
    assert a.__dlpack_device__() == (1, 0)
    for version, name in ((None, b"dltensor"), ((0, 8), b"dltensor"), ((1, 0), b"dltensor_versioned"),
                          ((2, 3), b"dltensor_versioned")):
        assert capsule_name(a.__dlpack__(max_version=version)) == name
    assert capsule_name(a.__dlpack__()) == b"dltensor"


def test_copies_and_devices_are_the_consumers_choice():
    a = smelt.array([1, 2])
    assert np.shares_memory(np.from_dlpack(Broken(a.__dlpack__(copy=False))), np.asarray(a))
    assert not np.shares_memory(np.from_dlpack(Broken(a.__dlpack__(copy=True, max_version=(1, 0)))), np.asarray(a))
    assert np.from_dlpack(Broken(a.__dlpack__(dl_device=(1, 0)))).tolist() == [1, 2]
    with pytest.raises(BufferError, match=r"on device \(1, 0\) and cannot be exported to \(2, 0\)"):
        a.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError, match="stream is 1, expected None for an array in the host's memory"):
        a.__dlpack__(stream=1)
    assert a.__dlpack__(stream=-1)
    with pytest.raises(TypeError):
        a.__dlpack__(None)  # by name only


def test_capsules_that_nobody_takes_are_let_go():
    with open("/proc/self/statm") as file:
        before = int(file.read().split()[1])
    for _ in range(200):
        smelt.array(np.zeros(1 << 18, np.float32)).__dlpack__(max_version=(1, 0))
        smelt.array(np.zeros(1 << 18, np.float32)).__dlpack__()
    with open("/proc/self/statm") as file:
        assert (int(file.read().split()[1]) - before) * os.sysconf("SC_PAGESIZE") < 32 << 20  # of 400 MB


# ---- On GPUs, over a driver that notices work in no order. A process of its own: the driver is chosen once.

GPU_CODE = """
import ctypes, pickle, numpy as np, smelt
fake = ctypes.CDLL(%(driver)r)
fake.fake_cuda_hooks.restype = ctypes.POINTER(ctypes.c_void_p)
violation = ctypes.CFUNCTYPE(ctypes.c_char_p)(fake.fake_cuda_hooks()[9])

class Producer:
    def __init__(self, array): self.array, self.asked = array, []
    def __dlpack_device__(self): return self.array.__dlpack_device__()
    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append(stream)
        return self.array.__dlpack__(stream=stream, max_version=max_version)

def raises(error, text, call, *arguments, **keywords):
    try: call(*arguments, **keywords)
    except error as e: assert text in str(e), str(e)
    else: raise AssertionError("nothing was raised")

host = smelt.array(np.arange(12, dtype=np.float32).reshape(3, 4))
a = host.to("cuda")
assert a.device == "cuda:0" and a.to("cuda:0") is a and a.to("cpu").device == "cpu"
assert a.tolist() == host.tolist() and a[1, 2].item() == 6 and np.asarray(a[:, ::-1]).tolist() == host[:, ::-1].tolist()
assert repr(a) == repr(host) and pickle.loads(pickle.dumps(a)).tolist() == host.tolist()
assert a.astype(smelt.int8).device == "cuda:0"
raises(BufferError, "an array on a device has no buffer; use a.to('cpu')", memoryview, a)
raises(ValueError, "NumPy needs a copy", a.__array__, copy=False)

# Ours out, and in again: the producer is told our default stream's handle.
assert a.__dlpack_device__() == (2, 0)
producer = Producer(a)
b = smelt.from_dlpack(producer)
assert b.device == "cuda:0" and b.tolist() == host.tolist()
assert len(producer.asked) == 1 and producer.asked[0] > 2, producer.asked
raises(ValueError, "stream is 0, expected None, -1, 1, 2 or a stream's handle", a.__dlpack__, stream=0)
for stream in (None, -1, 1): a.__dlpack__(stream=stream)
assert smelt.from_dlpack(Producer(a), device="cpu").device == "cpu"

# The host may ask for it.
assert np.from_dlpack(type("Host", (), {"__dlpack_device__": lambda s: (1, 0),
    "__dlpack__": lambda s, **k: a.__dlpack__(dl_device=(1, 0), max_version=(1, 0))})()).tolist() == host.tolist()
raises(BufferError, "cannot be exported to (1, 0) without a copy", a.__dlpack__, dl_device=(1, 0), copy=False)
raises(BufferError, "cannot be exported to (2, 1)", a.__dlpack__, dl_device=(2, 1))
c = smelt.from_dlpack(Producer(a), copy=True)
del a, b, producer
assert c.tolist() == host.tolist()
assert violation() is None, violation()
print("good")
"""


def test_gpu_arrays_over_the_fake_driver(build_folder):
    driver = os.path.join(build_folder, "tests", "libfakecuda.so")
    if not os.path.exists(driver):
        pytest.skip(f"{driver} has not been built")
    environment = dict(os.environ, SMELT_CUDA_DRIVER=driver, FAKE_CUDA_DEFERRED="1")
    result = subprocess.run([sys.executable, "-c", GPU_CODE % {"driver": driver}], env=environment, capture_output=True,
                            text=True, timeout=1500)
    assert result.returncode == 0 and result.stdout == "good\n", result.stderr
