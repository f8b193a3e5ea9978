// The runtime's numbers of types (abi/tile.h).
template <typename T> struct kind;
template <> struct kind<float> { static constant constexpr ulong value = 1; };
template <> struct kind<half> { static constant constexpr ulong value = 2; };
template <> struct kind<bfloat> { static constant constexpr ulong value = 3; };
constant constexpr ulong FORM = kind<A_TYPE>::value | kind<B_TYPE>::value << 8 | kind<C_TYPE>::value << 16;

// Tiles. The one thread of a threadgroup hands its tile to the runtime's blocked product.
kernel void smelt_matmul(device const A_TYPE *a [[buffer(0)]], device const B_TYPE *b [[buffer(1)]],
                         device C_TYPE *c [[buffer(2)]], constant matrices &m [[buffer(3)]],
                         uint3 tile [[threadgroup_position_in_grid]]) {
    long at[3];
    find_tile(m, tile, at);
    const ulong rows = ulong(min(m.tile_rows, m.rows - long(tile.y) * m.tile_rows));
    const ulong columns = ulong(min(m.tile_columns, m.columns - long(tile.x) * m.tile_columns));
    __smelt_tile_product(FORM, rows, columns, ulong(m.depth), 0ul, 0ul, ulong(c + at[2]), ulong(m.stride[2][0]),
                         ulong(m.stride[2][1]), 0ul,
                         // The left operand: lines are rows of A.
                         ulong(a + at[0]), ulong(m.stride[0][0]), ulong(m.stride[0][1]), 0ul, rows, 0ul, 0ul, 0ul, 0ul, 0ul, 0ul,
                         // The right operand: lines are columns of B.
                         ulong(b + at[1]), ulong(m.stride[1][1]), ulong(m.stride[1][0]), 0ul, columns, 0ul, 0ul, 0ul, 0ul, 0ul,
                         0ul);
}
