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

try:
    y.to("cuda:0")
except smelt.NoDeviceError as error:
    status: str = error.status

smelt.array()  # expect: call-arg
smelt.array([1], kind="float32")  # expect: call-arg
count: int = x.shape  # expect: assignment
x.reshap(2)  # expect: attr-defined
x.to(0)  # expect: arg-type
smelt.devices("cpu")  # expect: call-arg
