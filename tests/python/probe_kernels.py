"""Kernels of an array `a` with a result `out`, and the arguments of their calls."""
import smelt

F32 = smelt.float32
I = "uint i = thread_position_in_grid.x;\n"


def kernel_of(source, inputs=("a",), outputs=("out",), name="probe", **options):
    return smelt.metal_kernel(name=name, input_names=list(inputs), output_names=list(outputs), source=source, **options)


def arguments_of(a, **options):
    return {"inputs": [a], "output_shapes": [a.shape], "output_dtypes": [F32], "grid": (a.size, 1, 1),
            "threadgroup": (64, 1, 1)} | options
