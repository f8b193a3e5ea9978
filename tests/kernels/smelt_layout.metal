// <smelt/layout>: offsets of every kind of layout, known and dynamic, and blocks of blocks.
// run: -b 0:out:int32:384 --bytes 1=int32:6,8,0,0 --grid 48 --threadgroup 48
// let row = lambda i: i % 48 // 8
// let column = lambda i: i % 8
// let block = lambda i: (row(i) // 2 * 2 + column(i) // 4) * 8
// expect buffer 0: f(i) for i in 384: (row(i) * 8 + column(i), row(i) * 8 + column(i), row(i) + 6 * column(i), row(i) + 6 * column(i), row(i) * 20 + column(i) * 2, row(i) * 20 + column(i) * 2, block(i) + row(i) % 2 * 4 + column(i) % 4, block(i) + row(i) % 2 + column(i) % 4 * 2)[i // 48]
#include <metal_stdlib>
#include <smelt/layout>
using namespace metal;
using namespace smelt;

static_assert(decltype(row_major<6, 8>())::elements == 48, "elements");
static_assert(known_product(dynamic, 3) == dynamic && known_product(2, 3) == 6, "products");

kernel void layouts(device int *out [[buffer(0)]], constant int2 &size [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    const int row = int(i) / 8, column = int(i) % 8;
    out[i] = int(row_major<6, 8>()(row, column));
    out[48 + i] = int(row_major(size.x, size.y)(row, column));
    out[96 + i] = int(column_major<6, 8>()(row, column));
    out[144 + i] = int(column_major(size.x, size.y)(row, column));
    out[192 + i] = int(strided<6, 8, 20, 2>()(row, column));
    out[240 + i] = int(strided(size.x, size.y, 20, 2)(row, column));
    // 3 × 2 blocks of 2 × 4 elements, by rows and by columns.
    const auto rows = blocked(row_major<3, 2>(), row_major<2, 4>());
    const auto columns = blocked(row_major(3, 2), column_major<2, 4>());
    out[288 + i] = rows.dim(0) == 6 && rows.dim(1) == 8 ? int(rows(row, column)) : -1;
    out[336 + i] = columns.dim(0) == 6 && columns.dim(1) == 8 ? int(columns(row, column)) : -1;
}
