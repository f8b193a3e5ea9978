// Grids that cut groups off in any of the dimensions: each thread runs once, in a group of its size and place. With barriers and without.
// for kernel: plain turns
// for grid: 8,60,40 11,60,40 11,60,41 11,61,40 9,61,41
// run: {kernel} -b 0:out:uint32:27060 --grid {grid} --threadgroup 4,2,2
// let part = lambda at, size, whole: min(size, whole - at // size * size)
// let size = lambda x, y, z: (part(x, 4, grid[0]) * 4 + part(y, 2, grid[1])) * 4 + part(z, 2, grid[2])
// let value = lambda x, y, z: size(x, y, z) * 65536 + (x // 4 * 64 + y // 2) * 32 + z // 2 + 1
// let place = lambda i, x, y: value(i % x, i // x % y, i // x // y)
// expect buffer 0: f(i) for i in 27060: place(i, grid[0], grid[1]) if i < grid[0] * grid[1] * grid[2] else 0
#include <metal_stdlib>
using namespace metal;

static void add(device atomic_uint *out, uint3 at, uint3 grid, uint3 group, uint3 size) {
    const uint value = ((size.x * 4 + size.y) * 4 + size.z) * 65536 + (group.x * 64 + group.y) * 32 + group.z + 1;
    atomic_fetch_add_explicit(&out[(at.z * grid.y + at.y) * grid.x + at.x], value, memory_order_relaxed);
}

kernel void plain(device atomic_uint *out [[buffer(0)]], uint3 at [[thread_position_in_grid]], uint3 grid [[threads_per_grid]],
                  uint3 group [[threadgroup_position_in_grid]], uint3 size [[threads_per_threadgroup]]) {
    add(out, at, grid, group, size);
}

// The last thread of the group tells the others where the group is.
kernel void turns(device atomic_uint *out [[buffer(0)]], uint3 at [[thread_position_in_grid]], uint3 grid [[threads_per_grid]],
                  uint3 group [[threadgroup_position_in_grid]], uint3 size [[threads_per_threadgroup]],
                  uint index [[thread_index_in_threadgroup]]) {
    threadgroup uint3 place;
    if (index == size.x * size.y * size.z - 1) place = group;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    add(out, at, grid, place, size);
}
