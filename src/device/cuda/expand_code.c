/* Writes the kernel in PTX that copies a matrix: a thread loads a chunk of elements and their scale,
 * multiplies, and stores eight bfloats at a time. */
#include "device/cuda/expand_code.h"
#include "abi/entry_names.h"
#include "smelt/tensor.h"

#include <stddef.h>

_Static_assert(sizeof(struct expand_parameters) == 64 && offsetof(struct expand_parameters, chunks) == 48,
               "the code's offsets");

/* ---- Eight codes, one per byte in %w0 and %w1, become pairs of half in %h0 … %h3. */

/* Formats with an instruction. `type`: its operand's. */
#define TWO_PAIRS(word, first, second, type)                                     \
    "mov.b32 {%low, %high}, " word ";\ncvt.rn.f16x2." type " " first ", %low;\n" \
    "cvt.rn.f16x2." type " " second ", %high;\n"
#define PAIRS(type) TWO_PAIRS("%w0", "%h0", "%h1", type) TWO_PAIRS("%w1", "%h2", "%h3", type)

/* 1024 plus a byte is a half with this byte as its lower one. Signed codes have their sign bit flipped first.
 * `sum`: minus 1024, and minus what the flip adds, as a pair. */
#define WHOLE_PAIR(to, word, bytes, sum) \
    "prmt.b32 " to ", " word ", 0x64646464, " bytes ";\nfma.rn.f16x2 " to ", " to ", %ones, " sum ";\n"
#define WHOLE_PAIRS(sum)                                                                              \
    "mov.b32 %ones, 0x3C003C00;\nmov.b32 %sum, " sum ";\n" WHOLE_PAIR("%h0", "%w0", "0x4140", "%sum") \
        WHOLE_PAIR("%h1", "%w0", "0x4342", "%sum") WHOLE_PAIR("%h2", "%w1", "0x4140", "%sum")         \
            WHOLE_PAIR("%h3", "%w1", "0x4342", "%sum")
#define FLIP(bit) "xor.b32 %w0, %w0, " bit ";\nxor.b32 %w1, %w1, " bit ";\n"

/* ---- Eight codes of 4 bits in %w0 become one per byte. */

#define JOIN "prmt.b32 %w0, %even, %odd, 0x5140;\nprmt.b32 %w1, %even, %odd, 0x7362;\n"
#define NIBBLES \
    "and.b32 %even, %w0, 0x0F0F0F0F;\nshr.u32 %odd, %w0, 4;\nand.b32 %odd, %odd, 0x0F0F0F0F;\n" JOIN

/* fp4_e2m1 as fp8_e4m3, which stands for 2^-6 of it. */
#define FP4                                                                                                \
    "shl.b32 %even, %w0, 2;\nand.b32 %even, %even, 0x1C1C1C1C;\nshl.b32 %odd, %w0, 4;\n"                   \
    "and.b32 %odd, %odd, 0x80808080;\nor.b32 %even, %even, %odd;\n"                                        \
    "shr.u32 %odd, %w0, 2;\nand.b32 %odd, %odd, 0x1C1C1C1C;\nand.b32 %w0, %w0, 0x80808080;\nor.b32 %odd, " \
    "%odd, %w0;\n" JOIN
#define TIMES_64(pair) "fma.rn.f16x2 " pair ", " pair ", %ones, %sum;\n"
#define ALL_TIMES_64                                                                          \
    "mov.b32 %ones, 0x54005400;\nmov.b32 %sum, 0x80008000;\n" TIMES_64("%h0") TIMES_64("%h1") \
        TIMES_64("%h2") TIMES_64("%h3")

static const struct kind {
    int element, bits;
    const char *pairs;
} kinds[EXPAND_KINDS] = {
    {SMELT_FP8_E4M3, 8, PAIRS("e4m3x2")},
    {SMELT_FP8_E5M2, 8, PAIRS("e5m2x2")},
    {SMELT_FP4_E2M1, 4, FP4 PAIRS("e4m3x2") ALL_TIMES_64},
    {SMELT_INT8, 8, FLIP("0x80808080") WHOLE_PAIRS("0xE480E480")},
    {SMELT_UINT8, 8, WHOLE_PAIRS("0xE400E400")},
    {SMELT_INT4, 4, NIBBLES FLIP("0x08080808") WHOLE_PAIRS("0xE408E408")},
    {SMELT_UINT4, 4, NIBBLES WHOLE_PAIRS("0xE400E400")},
};

int cuda_expand_kind(int element) {
    for (int i = 0; i < EXPAND_KINDS; i++)
        if (kinds[i].element == element) return i;
    return -1;
}

/* ---- The kernel. */

static const char begin[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry " ENTRY_NAME "(.param .align 8 .b8 parameters[64])\n.maxntid 256, 1, 1\n{\n"
    ".reg .pred %done;\n.reg .b32 %chunks, %rows, %across, %down, %first, %thread, %row, %step, %block;\n"
    ".reg .b64 %codes, %scales, %copy, %line_bytes, %copy_bytes, %scale_step, %line, %line_scales, "
    "%line_copy, %wide;\n"
    ".reg .pred %inside<4>;\n.reg .b32 %chunk<4>, %code<8>, %scale<4>;\n"
    ".reg .b64 %at;\n.reg .b32 %w0, %w1, %h<4>, %even, %odd, %ones, %sum, %s, %t, %zero;\n"
    ".reg .b16 %low, %high;\n.reg .f32 %f0, %f1;\n"
    "ld.param.u64 %codes, [parameters];\nld.param.u64 %scales, [parameters+8];\n"
    "ld.param.u64 %copy, [parameters+16];\nld.param.u64 %line_bytes, [parameters+24];\n"
    "ld.param.u64 %copy_bytes, [parameters+32];\nld.param.u64 %scale_step, [parameters+40];\n"
    "ld.param.u32 %chunks, [parameters+48];\n"
    "ld.param.u32 %rows, [parameters+52];\nld.param.u32 %across, [parameters+56];\n"
    "ld.param.u32 %down, [parameters+60];\n"
    "mov.u32 %first, %ctaid.x;\nshl.b32 %first, %first, 10;\nmov.u32 %thread, %tid.x;\n"
    "add.u32 %first, %first, %thread;\nmov.u32 %row, %ctaid.y;\nmov.u32 %step, %nctaid.y;\n"
    "mov.b32 %zero, 0x80008000;\n"
    "next:\nsetp.ge.u32 %done, %row, %rows;\n@%done bra end;\n"
    "cvt.u64.u32 %wide, %row;\nmad.lo.u64 %line, %wide, %line_bytes, %codes;\n"
    "mad.lo.u64 %line_copy, %wide, %copy_bytes, %copy;\n"
    "shr.u32 %block, %row, %down;\ncvt.u64.u32 %wide, %block;\n"
    "mad.lo.u64 %line_scales, %wide, %scale_step, %scales;\n";

static const char end[] = "add.u32 %row, %row, %step;\nbra next;\nend:\nret;\n}\n";

static void write_load(struct text *text, int round, int bits) {
    text_addf(text,
              "add.u32 %%chunk%d, %%first, %d;\nsetp.lt.u32 %%inside%d, %%chunk%d, %%chunks;\n"
              "mul.wide.u32 %%at, %%chunk%d, %d;\nadd.u64 %%at, %%at, %%line;\n",
              round, round * EXPAND_THREADS, round, round, round, bits);
    if (bits == 8)
        text_addf(text, "@%%inside%d ld.global.nc.v2.u32 {%%code%d, %%code%d}, [%%at];\n", round, 2 * round,
                  2 * round + 1);
    else
        text_addf(text, "@%%inside%d ld.global.nc.u32 %%code%d, [%%at];\n", round, 2 * round);
    text_addf(
        text,
        "shr.u32 %%s, %%chunk%d, %%across;\ncvt.u64.u32 %%at, %%s;\nadd.u64 %%at, %%at, %%line_scales;\n"
        "@%%inside%d ld.global.nc.u8 %%scale%d, [%%at];\n",
        round, round, round);
}

/* A code of ue8m0 as a pair of bfloat: 0 is 2^-127, below the normal numbers; 255 is NaN. */
static void write_scale(struct text *text, int round) {
    text_addf(
        text,
        "shl.b32 %%s, %%scale%d, 7;\nmax.u32 %%s, %%s, 0x40;\nadd.u32 %%t, %%scale%d, 1;\n"
        "shr.u32 %%t, %%t, 8;\nshl.b32 %%t, %%t, 6;\nor.b32 %%s, %%s, %%t;\nmul.lo.u32 %%s, %%s, 0x10001;\n",
        round, round);
}

static void write_store(struct text *text, int round, const struct kind *kind) {
    text_addf(text, "mov.b32 %%w0, %%code%d;\n", 2 * round);
    if (kind->bits == 8) text_addf(text, "mov.b32 %%w1, %%code%d;\n", 2 * round + 1);
    text_add(text, kind->pairs);
    write_scale(text, round);
    for (int i = 0; i < 4; i++)
        text_addf(text,
                  "mov.b32 {%%low, %%high}, %%h%d;\ncvt.f32.f16 %%f0, %%low;\ncvt.f32.f16 %%f1, %%high;\n"
                  "cvt.rn.bf16x2.f32 %%h%d, %%f1, %%f0;\nfma.rn.bf16x2 %%h%d, %%h%d, %%s, %%zero;\n",
                  i, i, i, i);
    text_addf(text,
              "mul.wide.u32 %%at, %%chunk%d, 16;\nadd.u64 %%at, %%at, %%line_copy;\n"
              "@%%inside%d st.global.v4.b32 [%%at], {%%h0, %%h1, %%h2, %%h3};\n",
              round, round);
}

void cuda_expand_write_code(struct text *text, int kind) {
    text_add(text, begin);
    for (int i = 0; i < EXPAND_ROUNDS; i++) write_load(text, i, kinds[kind].bits);
    for (int i = 0; i < EXPAND_ROUNDS; i++) write_store(text, i, &kinds[kind]);
    text_add(text, end);
}
