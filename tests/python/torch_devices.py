"""The devices that tests of smelt.torch run on: the CPU, and PyTorch's GPU where it has one."""
import pytest
import torch

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_gpu)]
