"""Graphs: computations that are described first, compiled for a device, and executed many times in a session.

A graph's values are smelt.array without elements: smelt's functions, operators, kernels and transformations (smelt.grad
…) take them as they take arrays. docs/graphs.md teaches them."""
from smelt.graph import ops
from smelt.graph.building import Graph, TensorType
from smelt.graph.driver import CPU, Accelerator, Device, DType, Tensor, accelerator_count
from smelt.graph.registering import Operation, operation
from smelt.graph.session import InferenceSession, Model, compile

__all__ = ["Accelerator", "accelerator_count", "compile", "CPU", "Device", "DType", "Graph", "InferenceSession",
           "Model", "Operation", "operation", "ops", "Tensor", "TensorType"]
