"""A user's program, for mypy: it is read, not run."""
import numpy

import smelt
from smelt import doctor

x: smelt.array = smelt.array([[1.0, 2.0], [3.0, 4.0]], dtype=smelt.float16)
y = smelt.array(numpy.arange(4, dtype=numpy.float32))
shape: tuple[int, ...] = x.shape
names: list[str] = smelt.devices()
element: smelt.array = x[0]
where: str = x.astype("float32").to("cpu").device
wide: smelt.Dtype = smelt.Dtype(float)
same: bool = wide == smelt.float32
found: dict[str, object] = doctor.report()
kernel: smelt.Kernel = smelt.metal_kernel(name="one", input_names=["a"], output_names=["out"],
                                          source="out[thread_position_in_grid.x] = T(a[0]);")
(out,) = kernel(inputs=[x], output_shapes=[(4,)], output_dtypes=[smelt.float32], grid=(4, 1, 1), threadgroup=(4, 1, 1),
                template=[("T", smelt.float32)], init_value=0)
bound: smelt.BoundKernel = kernel.bind(inputs=[x], output_shapes=[(4,)], output_dtypes=["float32"], grid=4, threadgroup=4)
(out,) = bound(y)
if kernel.last_run is not None:
    took: float = kernel.last_run.compile_seconds

try:
    y.to("cuda:0")
except smelt.NoDeviceError as error:
    status: str = error.status

smelt.array()  # expect: call-arg
smelt.array([1], kind="float32")  # expect: call-arg
count: int = x.shape  # expect: assignment
x.reshap(2)  # expect: attr-defined
x.to(0)  # expect: arg-type
kernel(inputs=[x], grid=(4, 1, 1))  # expect: call-arg
kernel([x], grid=4, threadgroup=4)  # expect: call-arg
smelt.metal_kernel("one", ["a"], ["out"])  # expect: call-arg
smelt.metal_kernel("one", ["a"], ["out"], 3)  # expect: arg-type
smelt.devices("cpu")  # expect: call-arg
