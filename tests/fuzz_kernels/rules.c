/* What fits on a line: expressions and simple statements, as a table of rules. In a rule's text $ introduces
 * what is to be filled in:
 *
 *   $B $c $s $i $u $l $L $h $f $2 $3 $4 $U $C $H   an expression of that type (enum type)
 *   $V $W $@ $T                                    uniform integer, uniform bool, index, slot
 *   $!u                                            a variable of that type that may be written
 *   $^u                                            one of the thread's own elements of output out_u
 *   $*u2                                           the thread's own element 2 of output out_u
 *   $k                                             a loop's counter, below 16
 *   $#9.                                           a number from 0 to 9
 *   $%   $~                                        an integer, a float that matters to arithmetic
 *   $[a`b`c]                                       one of the alternatives
 *   $< $>                                          between them, lanes may be missing */
#include "rules.h"

#define R(type, feature, weight, place, text) {type, FEATURE_##feature, weight, place, text}

const struct rule rules[] = {
    /* ---- uint */
    R(UINT, INTEGER, 3, ANYWHERE, "$%"),
    R(UINT, INTEGER, 3, KERNEL, "$[i`tid`lane`size`group`threads]"),
    R(UINT, INTEGER, 2, ANYWHERE, "$k"),
    R(UINT, INTEGER, 14, ANYWHERE, "($u $[+`-`*`&`|`^] $u)"),
    R(UINT, INTEGER, 3, ANYWHERE, "($[min`max`absdiff](uint($u), uint($u)))"),
    R(UINT, INTEGER, 2, ANYWHERE, "clamp(uint($u), $#20.u, $#99.u + 20u)"),
    R(UINT, DIVISION, 4, ANYWHERE, "($u $[/`%] $u)"),
    R(UINT, DIVISION, 3, ANYWHERE, "($u $[/`%] $[2`3`5`7`10`16`32`33`255`65535`0x80000001]u)"),
    R(UINT, DIVISION, 3, ANYWHERE, "(uint($[$s`$s`$c`$s >> 3]) $[/`%] (uint($c) % 29u + 1u))"),
    R(UINT, SHIFT, 5, ANYWHERE, "($u $[<<`>>] $u)"),
    R(UINT, SHIFT, 3, ANYWHERE, "($u $[<<`>>] $#31.u)"),
    R(UINT, BITS, 5, ANYWHERE, "$[popcount`clz`ctz`reverse_bits](uint($u))"),
    R(UINT, BITS, 3, ANYWHERE, "$[rotate`mulhi`addsat`subsat`hadd`rhadd](uint($u), uint($u))"),
    R(UINT, BITS, 1, ANYWHERE, "$[madsat`madhi](uint($u), uint($u), uint($u))"),
    R(UINT, BITS, 2, ANYWHERE, "extract_bits(uint($u), $#31.u, $#9.u)"),
    R(UINT, BITS, 1, ANYWHERE, "insert_bits(uint($u), uint($u), $#31.u, $#12.u)"),
    R(UINT, CONVERSION, 3, ANYWHERE, "uint($[$f`$h`$i`$c`$s`$L`$l`$B])"),
    R(UINT, INTEGER, 3, ANYWHERE, "uint($i)"),
    R(UINT, SPECIAL, 2, ANYWHERE, "bits_of($f)"),
    R(UINT, TERNARY, 5, ANYWHERE, "($B ? $<$u : $u$>)"),
    R(UINT, TERNARY, 2, ANYWHERE, "select(uint($u), uint($u), $B)"),
    R(UINT, VECTOR, 2, ANYWHERE, "$U.$[x`y`z`w]"),
    R(UINT, VECTOR, 2, ANYWHERE, "uint($U[$u & 3u])"),
    R(UINT, VECTOR, 1, ANYWHERE, "uint($C.$[x`y`z`w])"),
    R(UINT, HELPER, 6, WITH_HELPERS, "helper_u($u, $u, $i)"),
    R(UINT, PRIVATE, 5, KERNEL, "p_u[$u & 7u]"),
    R(UINT, PRIVATE, 2, KERNEL, "p_n[$u & 1u][$u % 3u]"),
    R(UINT, PRIVATE, 2, KERNEL, "uint($[p_c[$u & 15u]`p_l[$u & 3u]`p_s[$i & 7]])"),
    R(UINT, STRUCTURE, 3, KERNEL, "$[one`records[$u & 3u]].$[a`small[1]`small[$u & 1u]]"),
    R(UINT, LOAD_GATHER, 10, KERNEL, "in_u[$@]"),
    R(UINT, LOAD_CONTIGUOUS, 3, KERNEL, "in_u[i]"),
    R(UINT, LOAD_UNIFORM, 2, KERNEL, "in_small[$u & 3u]"),
    R(UINT, LOAD_VECTOR, 2, KERNEL, "(in_u + ($@))[0]"),
    R(UINT, LOAD_VECTOR, 2, KERNEL, "($B ? in_u : in_u + 4096)[$u & 4095u]"),
    R(UINT, LOAD_OWN, 3, KERNEL, "$^u"),
    R(UINT, SIMD_REDUCE, 6, ANYWHERE, "simd_$[sum`product`min`max`and`or`xor](uint($u))"),
    R(UINT, SIMD_SCAN, 4, ANYWHERE, "simd_prefix_$[inclusive`exclusive]_$[sum`product](uint($u))"),
    R(UINT, SIMD_SHUFFLE, 4, ANYWHERE,
      "simd_shuffle$[`_up`_down`_xor`_rotate_up`_rotate_down](uint($u), ushort($#33.))"),
    R(UINT, SIMD_SHUFFLE, 3, ANYWHERE,
      "simd_shuffle$[`_up`_down`_xor`_rotate_up`_rotate_down](uint($u), ushort($u & 31u))"),
    R(UINT, SIMD_SHUFFLE, 2, ANYWHERE, "simd_broadcast$[(uint($u), ushort($#31.))`_first(uint($u))]"),
    R(UINT, SIMD_SHUFFLE, 1, ANYWHERE, "simd_shuffle_and_fill_$[up`down](uint($u), uint($u), ushort($#31.))"),
    R(UINT, SIMD_VOTE, 3, ANYWHERE, "uint(ulong(simd_ballot($B)))"),
    R(UINT, SIMD_VOTE, 1, ANYWHERE, "uint(ulong(simd_active_threads_mask()))"),
    R(UINT, QUAD, 3, ANYWHERE, "quad_$[sum`product`min`max`and`or`xor](uint($u))"),
    R(UINT, QUAD, 2, ANYWHERE, "quad_prefix_$[inclusive`exclusive]_$[sum`product](uint($u))"),
    R(UINT, QUAD, 2, ANYWHERE, "quad_shuffle$[`_up`_down`_xor`_rotate_up](uint($u), ushort($#3.))"),
    R(UINT, QUAD, 1, ANYWHERE, "uint(ushort(quad_ballot($B)))"),
    R(UINT, ATOMIC_OWN, 3, KERNEL, "uint(atomic_load_explicit(&own[i], memory_order_relaxed))"),
    /* ---- int: signed sums and products wrap around */
    R(INT, INTEGER, 3, ANYWHERE, "int($%)"),
    R(INT, INTEGER, 2, ANYWHERE, "-$#40."),
    R(INT, INTEGER, 4, KERNEL, "int($[i`tid`lane`size])"),
    R(INT, INTEGER, 2, KERNEL, "(int($[i`tid`lane]) - $#99.)"),
    R(INT, INTEGER, 6, ANYWHERE, "int($u)"),
    R(INT, INTEGER, 8, ANYWHERE, "($i $[+`-`*] $i)"),
    R(INT, INTEGER, 1, ANYWHERE, "(- $i)"),
    R(INT, INTEGER, 1, ANYWHERE, "int($[0x7fffffff`0x80000000u`0x40000000])"),
    R(INT, DIVISION, 2, ANYWHERE, "($#99. $[/`%] ($i $[+`*] $[$i`2`4`65536]))"),
    R(INT, INTEGER, 6, ANYWHERE, "(($i & 0xffff) $[+`-] ($i >> 8))"),
    R(INT, INTEGER, 3, ANYWHERE, "(int($s) * int($s))"),
    R(INT, INTEGER, 4, ANYWHERE, "($i $[&`|`^] $i)"),
    R(INT, INTEGER, 3, ANYWHERE, "$[min`max](int($i), int($i))"),
    R(INT, INTEGER, 2, ANYWHERE, "$[abs(int($i))`(~$i)]"),
    R(INT, INTEGER, 2, ANYWHERE, "clamp(int($i), -$#20., $#99.)"),
    R(INT, DIVISION, 5, ANYWHERE, "($i $[/`%] $i)"),
    R(INT, DIVISION, 3, ANYWHERE, "($i $[/`%] $[2`3`-1`-3`7`10`16`-32`33`127])"),
    R(INT, SHIFT, 4, ANYWHERE, "($i $[<<`>>] $u)"),
    R(INT, SHIFT, 2, ANYWHERE, "($i >> $#31.)"),
    R(INT, BITS, 3, ANYWHERE, "$[popcount`clz`ctz`reverse_bits](int($i))"),
    R(INT, BITS, 2, ANYWHERE, "$[mulhi`addsat`subsat`rotate`hadd](int($i), int($i))"),
    R(INT, CONVERSION, 6, ANYWHERE, "int($[$f`$h`$c`$s`$l`$B`$f`$f])"),
    R(INT, TERNARY, 4, ANYWHERE, "($B ? $<$i : $i$>)"),
    R(INT, LOAD_GATHER, 8, KERNEL, "in_i[$@]"),
    R(INT, LOAD_CONTIGUOUS, 3, KERNEL, "in_i[i]"),
    R(INT, LOAD_UNIFORM, 1, KERNEL, "scalar_i"),
    R(INT, LOAD_OWN, 2, KERNEL, "$^i"),
    R(INT, STRUCTURE, 2, KERNEL, "int($[one`records[$u & 3u]].c)"),
    R(INT, SIMD_REDUCE, 4, ANYWHERE, "simd_$[sum`min`max`min`max`and`or`xor](int($i))"),
    R(INT, SIMD_SCAN, 2, ANYWHERE, "simd_prefix_$[inclusive`exclusive]_sum(int($i))"),
    R(INT, SIMD_SHUFFLE, 2, ANYWHERE, "simd_shuffle$[_up`_down`_xor](int($i), ushort($[1`2`4`8`16`3`31]))"),
    R(INT, QUAD, 2, ANYWHERE, "quad_$[sum`min`max](int($i))"),
    R(INT, ATOMIC_OWN, 2, KERNEL,
      "atomic_$[fetch_add`fetch_sub`fetch_min`fetch_max`fetch_xor`exchange]_explicit(&own[i], int($u), "
      "memory_order_relaxed)"),
    /* ---- uchar, short */
    R(UCHAR, NARROW, 2, ANYWHERE, "uchar($%)"),
    R(UCHAR, NARROW, 4, ANYWHERE, "uchar($u)"),
    R(UCHAR, NARROW, 5, ANYWHERE, "uchar($c $[+`-`*`&`|`^] $c)"),
    R(UCHAR, NARROW, 2, ANYWHERE, "$[min`max`addsat`subsat`rotate`mulhi](uchar($c), uchar($c))"),
    R(UCHAR, NARROW, 2, ANYWHERE, "$[popcount`clz`ctz`reverse_bits](uchar($c))"),
    R(UCHAR, DIVISION, 2, ANYWHERE, "uchar($c $[/`%] $c)"),
    R(UCHAR, SHIFT, 2, ANYWHERE, "uchar($c $[<<`>>] $#9.)"),
    R(UCHAR, CONVERSION, 2, ANYWHERE, "uchar($f)"),
    R(UCHAR, LOAD_GATHER, 5, KERNEL, "in_c[$@]"),
    R(UCHAR, LOAD_CONTIGUOUS, 3, KERNEL, "in_c[i]"),
    R(UCHAR, LOAD_OWN, 1, KERNEL, "$^c"),
    R(UCHAR, PRIVATE, 2, KERNEL, "p_c[$u & 15u]"),
    R(UCHAR, SIMD_SHUFFLE, 1, ANYWHERE, "simd_shuffle_xor(uchar($c), ushort($#31.))"),
    R(UCHAR, SIMD_REDUCE, 1, ANYWHERE, "simd_$[max`min`sum`xor](uchar($c))"),
    R(SHORT, NARROW, 2, ANYWHERE, "short($%)"),
    R(SHORT, NARROW, 4, ANYWHERE, "short($i)"),
    R(SHORT, NARROW, 5, ANYWHERE, "short($s $[+`-`&`|`^] $s)"),
    R(SHORT, NARROW, 2, ANYWHERE, "$[min`max`addsat`subsat`mulhi](short($s), short($s))"),
    R(SHORT, NARROW, 1, ANYWHERE, "$[abs`popcount`clz`reverse_bits](short($s))"),
    R(SHORT, DIVISION, 2, ANYWHERE, "short($s $[/`%] $s)"),
    R(SHORT, CONVERSION, 2, ANYWHERE, "short($[$f`$h])"),
    R(SHORT, LOAD_GATHER, 4, KERNEL, "in_s[$@]"),
    R(SHORT, LOAD_CONTIGUOUS, 3, KERNEL, "in_s[i]"),
    R(SHORT, LOAD_OWN, 1, KERNEL, "$^s"),
    R(SHORT, PRIVATE, 2, KERNEL, "p_s[$u & 7u]"),
    R(SHORT, SIMD_REDUCE, 1, ANYWHERE, "simd_$[max`min`sum](short($s))"),
    /* ---- long, ulong */
    R(ULONG, WIDE, 3, ANYWHERE, "ulong($[$%`$u`$l`$u])"),
    R(ULONG, WIDE, 6, ANYWHERE, "($L $[+`-`*`&`|`^] $L)"),
    R(ULONG, WIDE, 2, ANYWHERE, "(ulong($u) $[*`<<`+] ulong($u))"),
    R(ULONG, WIDE, 2, ANYWHERE, "$[min`max`mulhi`rotate`addsat](ulong($L), ulong($L))"),
    R(ULONG, WIDE, 2, ANYWHERE, "$[popcount`clz`ctz`reverse_bits](ulong($L))"),
    R(ULONG, DIVISION, 2, ANYWHERE, "($L $[/`%] $L)"),
    R(ULONG, DIVISION, 2, ANYWHERE, "(ulong($[$s`$i`$c]) $[/`%] (ulong($[$c`$s & 63]) + 1ul))"),
    R(ULONG, SHIFT, 3, ANYWHERE, "($L $[<<`>>] $u)"),
    R(ULONG, CONVERSION, 1, ANYWHERE, "ulong($f)"),
    R(ULONG, TERNARY, 2, ANYWHERE, "($B ? $<$L : $L$>)"),
    R(ULONG, LOAD_GATHER, 4, KERNEL, "in_l[$@]"),
    R(ULONG, LOAD_CONTIGUOUS, 2, KERNEL, "in_l[i]"),
    R(ULONG, LOAD_OWN, 1, KERNEL, "$^L"),
    R(ULONG, PRIVATE, 2, KERNEL, "p_l[$u & 3u]"),
    R(ULONG, SIMD_REDUCE, 2, ANYWHERE, "simd_$[sum`min`max`xor`or](ulong($L))"),
    R(ULONG, SIMD_SCAN, 1, ANYWHERE, "simd_prefix_$[inclusive`exclusive]_$[sum`product](ulong($L))"),
    R(ULONG, SIMD_SHUFFLE, 2, ANYWHERE, "simd_shuffle$[`_up`_down`_xor](ulong($L), ushort($u & 31u))"),
    R(LONG, WIDE, 3, ANYWHERE, "long($[$i`$%`$L`$s])"),
    R(LONG, WIDE, 3, ANYWHERE, "($l $[+`-`*] $l)"),
    R(LONG, DIVISION, 1, ANYWHERE, "(long($#99.) $[/`%] ($l $[+`*] $[$l`2`4]))"),
    R(LONG, WIDE, 2, ANYWHERE, "(long($i) * long($i))"),
    R(LONG, WIDE, 2, ANYWHERE, "($l $[&`|`^`>>] $l)"),
    R(LONG, WIDE, 1, ANYWHERE, "$[min`max`mulhi`subsat](long($l), long($l))"),
    R(LONG, DIVISION, 2, ANYWHERE, "($l $[/`%] $l)"),
    R(LONG, CONVERSION, 2, ANYWHERE, "long($f)"),
    R(LONG, SIMD_REDUCE, 1, ANYWHERE, "simd_$[sum`min`max](long($l))"),
    /* ---- float. The sign and payload of a NaN are undefined: number_of() wherever a sign would show. */
    R(FLOAT, REAL, 3, ANYWHERE, "$~"),
    R(FLOAT, REAL, 4, ANYWHERE, "float($[$i`$u`$s`$c])"),
    R(FLOAT, REAL, 12, ANYWHERE, "($f $[+`-`*`+`-`*`/] $f)"),
    R(FLOAT, REAL, 3, ANYWHERE, "($f * $f $[+`-] $f)"),
    R(FLOAT, REAL, 3, ANYWHERE, "$[min`max`fmin`fmax`fdim](float($f), float($f))"),
    R(FLOAT, REAL, 2, ANYWHERE, "$[clamp`mix`fma`median3](float($f), float($f), float($f))"),
    R(FLOAT, REAL, 3, ANYWHERE, "$[floor`ceil`trunc`rint`round`fract`abs`sqrt`sign`saturate](float($f))"),
    R(FLOAT, REAL, 1, ANYWHERE, "copysign(float($f), number_of($f))"),
    R(FLOAT, MATH, 6, ANYWHERE,
      "$[exp`exp2`log`log2`sin`cos`tan`tanh`rsqrt`sinh`atan`acos`asin`exp10`cospi`log10](float($f))"),
    R(FLOAT, MATH, 3, ANYWHERE, "$[pow`atan2`fmod`powr`step`divide](float($f), number_of($f))"),
    R(FLOAT, FAST, 1, ANYWHERE, "$[fast`precise]::$[exp`sin`log`cos](float($f))"),
    R(FLOAT, MATH, 1, ANYWHERE, "ldexp(float($f), $i & 63)"),
    R(FLOAT, SPECIAL, 2, ANYWHERE, "as_type<float>($u)"),
    R(FLOAT, SPECIAL, 6, KERNEL, "in_x[$@]"),
    R(FLOAT, SPECIAL, 2, KERNEL, "in_x[i]"),
    R(FLOAT, SPECIAL, 1, ANYWHERE, "$[INFINITY`NAN`-0.0f`FLT_MAX`1e-42f]"),
    R(FLOAT, HALF_REAL, 2, ANYWHERE, "float($h)"),
    R(FLOAT, HALF_REAL, 2, ANYWHERE, "float(bfloat($f))"),
    R(FLOAT, CONVERSION, 2, ANYWHERE, "float($[$L`$l`$B])"),
    R(FLOAT, TERNARY, 4, ANYWHERE, "($B ? $<$f : $f$>)"),
    R(FLOAT, TERNARY, 1, ANYWHERE, "select(float($f), float($f), $B)"),
    R(FLOAT, VECTOR, 3, ANYWHERE, "$[$2.x`$2.y`$3.z`$4.w`$4.x`$3.y]"),
    R(FLOAT, VECTOR, 1, ANYWHERE, "float($4[$u & 3u])"),
    R(FLOAT, VECTOR, 2, ANYWHERE, "$[dot($4, $4)`dot($3, $3)`length($2)]"),
    R(FLOAT, HELPER, 4, WITH_HELPERS, "helper_f($f, $f, $u)"),
    R(FLOAT, PRIVATE, 3, KERNEL, "p_f[$u & 7u]"),
    R(FLOAT, PRIVATE, 1, KERNEL, "p_v[$u & 3u].$[x`y`z`w]"),
    R(FLOAT, STRUCTURE, 2, KERNEL, "$[one`records[$u & 3u]].b"),
    R(FLOAT, LOAD_GATHER, 8, KERNEL, "in_f[$@]"),
    R(FLOAT, LOAD_CONTIGUOUS, 3, KERNEL, "in_f[i]"),
    R(FLOAT, LOAD_UNIFORM, 1, KERNEL, "scalar_f"),
    R(FLOAT, LOAD_OWN, 2, KERNEL, "$^f"),
    R(FLOAT, LOAD_VECTOR, 2, KERNEL, "((const device float4*)in_f)[$u & 4095u].$[x`y`z`w]"),
    R(FLOAT, SIMD_FLOAT, 4, ANYWHERE, "simd_$[sum`product`sum](float($f))"),
    R(FLOAT, SIMD_FLOAT_SCAN, 2, ANYWHERE, "simd_prefix_$[inclusive`exclusive]_$[sum`product](float($f))"),
    R(FLOAT, SIMD_REDUCE, 3, ANYWHERE,
      "(simd_$[min`max](float($f)) + 0.0f)"), /* of -0 and 0, either may be the result */
    R(FLOAT, SIMD_SHUFFLE, 3, ANYWHERE, "simd_shuffle$[`_up`_down`_xor](float($f), ushort($u & 31u))"),
    R(FLOAT, SIMD_SHUFFLE, 1, ANYWHERE, "simd_shuffle_$[up`down`xor](float($f), ushort($[1`2`4`8`16]))"),
    R(FLOAT, SIMD_MATRIX, 2, ANYWHERE, "product_of($f, $f, $f, $f, $f)"),
    R(FLOAT, QUAD, 1, ANYWHERE, "(quad_$[min`max](float($f)) + 0.0f)"),
    R(FLOAT, QUAD, 1, ANYWHERE, "quad_shuffle_xor(float($f), ushort($#3.))"),
    /* ---- half */
    R(HALF, HALF_REAL, 2, ANYWHERE, "half($~)"),
    R(HALF, HALF_REAL, 3, ANYWHERE, "half($[$f`$i`$c])"),
    R(HALF, HALF_REAL, 6, ANYWHERE, "half($h $[+`-`*`/] $h)"),
    R(HALF, HALF_REAL, 1, ANYWHERE, "$[min`max`fmod](half($h), half($h))"),
    R(HALF, HALF_REAL, 1, ANYWHERE, "$[exp`sqrt`floor`abs`sin`rint](half($h))"),
    R(HALF, HALF_REAL, 1, ANYWHERE, "fma(half($h), half($h), half($h))"),
    R(HALF, TERNARY, 1, ANYWHERE, "($B ? $<half($h) : half($h)$>)"),
    R(HALF, VECTOR, 1, ANYWHERE, "half($H.$[x`y`z`w])"),
    R(HALF, LOAD_GATHER, 4, KERNEL, "in_h[$@]"),
    R(HALF, LOAD_CONTIGUOUS, 2, KERNEL, "in_h[i]"),
    R(HALF, LOAD_OWN, 1, KERNEL, "$^h"),
    R(HALF, SIMD_FLOAT, 1, ANYWHERE, "simd_sum(half($h))"),
    R(HALF, SIMD_SHUFFLE, 1, ANYWHERE, "simd_shuffle_down(half($h), ushort($#9.))"),
    /* ---- bool */
    R(BOOL, INTEGER, 12, ANYWHERE, "($u $[<`>`<=`>=`==`!=] $u)"),
    R(BOOL, INTEGER, 8, ANYWHERE, "(($u & $[1`3`7`15`31]u) $[<`>`==`!=] $#9.u)"),
    R(BOOL, INTEGER, 4, KERNEL, "(($[i`tid`lane`i + lane`tid * 3u] & $[1`3`7`15`31]u) $[<`>`==`!=] $#9.u)"),
    R(BOOL, INTEGER, 4, KERNEL, "($[i`tid`lane] $[<`>=`==] $#40.u)"),
    R(BOOL, INTEGER, 5, ANYWHERE, "($i $[<`>`<=`>=`==`!=] $i)"),
    R(BOOL, NARROW, 2, ANYWHERE, "$[($c < $c)`($s >= $s)`($c == $c)]"),
    R(BOOL, WIDE, 2, ANYWHERE, "$[($L < $L)`($l >= $l)`($L == $L)]"),
    R(BOOL, REAL, 5, ANYWHERE, "($f $[<`>`<=`>=`==`!=] $f)"),
    R(BOOL, SPECIAL, 2, ANYWHERE, "$[isnan`isinf`isfinite](float($f))"),
    R(BOOL, HALF_REAL, 1, ANYWHERE, "($h $[<`>=] $h)"),
    R(BOOL, SHORT_CIRCUIT, 5, ANYWHERE, "($B $[&&`||] $<$B$>)"),
    R(BOOL, SHORT_CIRCUIT, 3, ANYWHERE, "!$B"),
    R(BOOL, SHORT_CIRCUIT, 2, ANYWHERE, "($B $[&`|`^`==] $B)"),
    R(BOOL, LOAD_EDGE, 2, KERNEL, "($u < 16384u && $<in_u[$u & 16383u] > $u$>)"),
    R(BOOL, VECTOR, 1, ANYWHERE, "$[any`all]($4 $[<`>=] $4)"),
    R(BOOL, SIMD_VOTE, 3, ANYWHERE, "simd_$[any`all]($B)"),
    R(BOOL, SIMD_VOTE, 1, ANYWHERE, "simd_is_first()"),
    R(BOOL, QUAD, 1, ANYWHERE, "quad_$[any`all]($B)"),
    /* ---- vectors */
    R(FLOAT2, VECTOR, 3, ANYWHERE, "float2($f, $f)"),
    R(FLOAT2, VECTOR, 2, ANYWHERE, "$[$4.xy`$4.wx`$3.zz`$2.yx`$4.yw]"),
    R(FLOAT2, VECTOR, 2, ANYWHERE, "($2 $[+`-`*] $2)"),
    R(FLOAT3, VECTOR, 3, ANYWHERE, "float3($f, $f, $f)"),
    R(FLOAT3, VECTOR, 2, ANYWHERE, "$[$4.xyz`$4.wzy`float3($2, $f)]"),
    R(FLOAT3, VECTOR, 2, ANYWHERE, "($3 $[+`-`*] $3)"),
    R(FLOAT4, VECTOR, 3, ANYWHERE, "float4($f, $f, $f, $f)"),
    R(FLOAT4, VECTOR, 2, ANYWHERE, "float4($[$2, $2`$3, $f`$f])"),
    R(FLOAT4, VECTOR, 3, ANYWHERE, "($4 $[+`-`*`/] $4)"),
    R(FLOAT4, VECTOR, 2, ANYWHERE, "($4 * $f)"),
    R(FLOAT4, VECTOR, 1, ANYWHERE, "$[fma($4, $4, $4)`max($4, $4)`floor($4)`clamp($4, -4.0f, 9.0f)]"),
    R(FLOAT4, VECTOR, 1, ANYWHERE, "float4($[$U`$H])"),
    R(FLOAT4, TERNARY, 1, ANYWHERE, "select($4, $4, $4 < $4)"),
    R(FLOAT4, LOAD_VECTOR, 4, KERNEL, "((const device float4*)in_f)[$[i`i`$u & 4095u`(i + $#9.u)]]"),
    R(FLOAT4, PRIVATE, 2, KERNEL, "p_v[$u & 3u]"),
    R(FLOAT4, SIMD_SHUFFLE, 1, ANYWHERE, "simd_shuffle_xor(float4($4), ushort($#31.))"),
    R(UINT4, VECTOR, 3, ANYWHERE, "uint4($u, $u, $u, $u)"),
    R(UINT4, VECTOR, 2, ANYWHERE, "($U $[+`-`*`&`^`>>] $U)"),
    R(UINT4, VECTOR, 1, ANYWHERE, "uint4($C)"),
    R(UINT4, LOAD_VECTOR, 3, KERNEL, "((const device uint4*)in_u)[$[i`$u & 4095u]]"),
    R(UINT4, SIMD_REDUCE, 1, ANYWHERE, "simd_sum(uint4($U))"),
    R(UCHAR4, VECTOR, 3, ANYWHERE, "uchar4($c, $c, $c, $c)"),
    R(UCHAR4, VECTOR, 2, ANYWHERE, "($C $[+`-`^`&] $C)"),
    R(UCHAR4, LOAD_VECTOR, 3, KERNEL, "((const device uchar4*)in_c)[$[i`$u & 4095u]]"),
    R(HALF4, VECTOR, 3, ANYWHERE, "half4($h, $h, $h, $h)"),
    R(HALF4, VECTOR, 2, ANYWHERE, "($H $[+`-`*] $H)"),
    R(HALF4, VECTOR, 1, ANYWHERE, "half4($4)"),
    R(HALF4, LOAD_VECTOR, 2, KERNEL, "((const device half4*)in_h)[$[i`$u & 4095u]]"),
    /* ---- uniform in a group */
    R(UNIFORM_UINT, INTEGER, 3, ANYWHERE, "$#40.u"),
    R(UNIFORM_UINT, INTEGER, 2, KERNEL, "$[size`group`threads`group]"),
    R(UNIFORM_UINT, LOAD_UNIFORM, 3, KERNEL, "$[scalar_u`uint(scalar_i)`in_small[$#3.]`in_u[$#4095.]]"),
    R(UNIFORM_UINT, INTEGER, 5, ANYWHERE, "($V $[+`-`*`&`^] $V)"),
    R(UNIFORM_UINT, LOAD_UNIFORM, 2, KERNEL, "in_u[$V & 4095u]"),
    R(UNIFORM_BOOL, INTEGER, 6, ANYWHERE, "(($V & 7u) $[<`>`==`!=] $#7.u)"),
    R(UNIFORM_BOOL, INTEGER, 2, ANYWHERE, "($V $[<`>=] $V)"),
    R(UNIFORM_BOOL, REAL, 1, KERNEL, "(scalar_f $[<`>=] $~)"),
    /* ---- indices below 16384, while i is below 4000 */
    R(INDEX, LOAD_CONTIGUOUS, 6, KERNEL, "$[i`i`int(i)`size_t(i)`long(i)`ulong(i)]"),
    R(INDEX, LOAD_CONTIGUOUS, 5, KERNEL,
      "$[i + $#9.u`int(i) + $#9.`i + $k`size_t(i) + $#9.`i + ($V & 1023u)`(group & 63u) * 64u + "
      "tid`tid`lane`tid + ($V & 255u)]"),
    R(INDEX, LOAD_STRIDED, 5, KERNEL,
      "$[i * 2u`i * 3u`i * 4u`int(i) * 2`size_t(i) * 3`tid * 4u`lane * 32u`lane * 33u] + $#3."),
    R(INDEX, LOAD_STRIDED, 2, KERNEL, "i * $[2`3`4]u + ($u $[& 1u`% 3u`& 3u])"),
    R(INDEX, LOAD_STRIDED, 2, KERNEL, "($k * 64u + i)"),
    R(INDEX, LOAD_STRIDED, 3, KERNEL,
      "$[(lane >> 3) * ($V & 255u) + (lane & 7u) * 2u`((lane >> 2 & 4u) | (lane >> 1 & 3u)) * ($V & 511u) + "
      "((lane "
      ">> 1 & 4u) | (lane << 1 & 2u))`tid / 16u * ($V & 127u) + tid % 16u`int(tid >> 2) * int($V & 31u) + "
      "int(tid & "
      "3u) * $#5.`(31u - lane) / 8u * ($V & 63u) + ($k & 3u) + lane % 8u`(tid >> 4) * ($V & 63u)] + $#9.u"),
    R(INDEX, LOAD_REVERSED, 3, KERNEL,
      "$[threads - 1u - i`4095u - i`4100 - int(i)`size - 1u - tid`31u - lane`8191u - 2u * i]"),
    R(INDEX, LOAD_UNIFORM, 2, KERNEL, "($V & 16383u)"),
    R(INDEX, LOAD_CLAMPED, 2, KERNEL,
      "$[clamp(int(i) - $#40., 0, $#999.)`min(i + $#40.u, threads - 1u)`min(i, $#99.u)`max(int(i) - $#40., "
      "0)`clamp(int(tid) + $#8. - 4, 0, int(size) - 1)]"),
    R(INDEX, LOAD_MODULO, 3, KERNEL,
      "$[i % $#40.u & 63u`i / $[2`3`4`8`32`33]u`i >> $#5.u`i & $[31`7`15`63`1023]u`i ^ $#15.u`(i ^ 32u)`(tid "
      "& 7u) * 8u + (tid >> 3 & 7u)`i % $[7`32`100`33]u]"),
    R(INDEX, LOAD_MODULO, 2, KERNEL,
      "$[(i - $#99.u) & 4095u`uint(int(i) - $#99.) & 8191u`(i + 0xfffffff0u) & 1023u`uint(short(i * 9u)) & "
      "16383u`uint(uchar(i + $#200.u))`(ulong(i) << 33) >> 32`ushort(i * 77u) & 16383]"),
    R(INDEX, LOAD_GATHER, 5, KERNEL, "($u & $[16383`4095`255`7]u)"),
    R(INDEX, LOAD_GATHER, 2, KERNEL, "$[$L & 1023ul`$i & 511`$c`$s & 0x1fff]"),
    /* ---- a slot of the group */
    R(SLOT, BARRIER, 5, KERNEL, "(tid + $#70.u) % size"),
    R(SLOT, BARRIER, 3, KERNEL, "size - 1u - tid"),
    R(SLOT, BARRIER, 3, KERNEL, "$u % size"),
    R(SLOT, BARRIER, 2, KERNEL, "min(tid $[^`+] $#40.u, size - 1u)"),
    R(SLOT, BARRIER, 2, KERNEL, "$V % size"),
    R(SLOT, BARRIER, 2, KERNEL, "min(tid / 8u + (tid & 7u) * 8u, size - 1u)"),
    R(SLOT, BARRIER, 1, KERNEL, "$[tid`0`size - 1u`tid & ~31u]"),
    /* ---- statements */
    R(STATEMENT, INTEGER, 12, ANYWHERE, "$!u = $u;"),
    R(STATEMENT, INTEGER, 6, ANYWHERE, "$!u $[+=`-=`*=`^=`|=`&=] $u;"),
    R(STATEMENT, INTEGER, 2, ANYWHERE, "$!u$[++`--];"),
    R(STATEMENT, INTEGER, 6, ANYWHERE, "$!i = $i;"),
    R(STATEMENT, INTEGER, 2, ANYWHERE, "$!i $[+=`-=`*=] $i;"),
    R(STATEMENT, INTEGER, 1, ANYWHERE,
      "for (int j = $i, k = 0; j $[>`>=`<`<=] $[j - 1`j + 1`$i] && k < 9; j $[+=`-=`*=] $[1`3`0x40000000], "
      "k++) $!u += $[uint(k)`uint(j)];"),
    R(STATEMENT, REAL, 10, ANYWHERE, "$!f = $f;"),
    R(STATEMENT, REAL, 5, ANYWHERE, "$!f $[+=`-=`*=] $f;"),
    /* Many values around a loop. */
    R(STATEMENT, REAL, 2, KERNEL,
      "{ float tile[6] = {$f, $f, 1, 2, $f, 4}; for (uint k = 0; k < $[2u`9u`size / 32u + 1u]; k++) "
      "for (uint j = 0; j < 6; j++) tile[j] = $[tile[(j + 1u) % 6u] * 0.5f + tile[j]`tile[j] * 0.25f + "
      "float(k + j)`max(tile[j], tile[5u - j] - float(k) * $#3.)]; $!f += tile[$#5.]; }"),
    R(STATEMENT, NARROW, 3, ANYWHERE, "$[$!c = $c`$!s = $s`$!c += $c];"),
    R(STATEMENT, WIDE, 4, ANYWHERE, "$[$!L = $L`$!l = $l`$!L += $L`$!L ^= $L];"),
    R(STATEMENT, HALF_REAL, 3, ANYWHERE, "$[$!h = $h`$!h += $h];"),
    R(STATEMENT, VECTOR, 3, ANYWHERE, "$[$!4 = $4`$!3 = $3`$!2 = $2`$!4 += $4`$!4 *= $f];"),
    R(STATEMENT, VECTOR, 2, ANYWHERE, "$[$!U = $U`$!C = $C`$!H = $H`$!U += $U];"),
    R(STATEMENT, VECTOR, 2, ANYWHERE,
      "$[$!4.$[x`y`z`w] = $f`$!4.xy = $2`$!4.wyz = $3`$!U.zx = $U.yw`$!4[$u & 3u] = $f`$!U[$u & 3u] += $u];"),
    R(STATEMENT, PRIVATE, 5, KERNEL,
      "$[p_u[$u & 7u] = $u`p_u[$u & 7u] += $u`p_f[$u & 7u] = $f`p_c[$u & 15u] = $c`p_l[$u & 3u] = $L`p_s[$i "
      "& 7] = $s];"),
    R(STATEMENT, PRIVATE, 2, KERNEL,
      "$[p_n[$u & 1u][$u % 3u] ^= $u`p_v[$u & 3u].$[x`w] = $f`p_v[$u & 3u] = float4($f)`p_u[$k & 7u] = $u];"),
    R(STATEMENT, PRIVATE, 2, KERNEL,
      "{ uint few[4] = {$u, $u, 3u, $u}; for (uint j = 0; j < 4u; j++) few[(j + $u) & 3u] += few[j]; $!u = "
      "few[$u & 3u] + few[1]; }"),
    R(STATEMENT, PRIVATE, 1, KERNEL,
      "{ float few[4]; for (uint j = 0; j < 4u; j++) few[j] = $f; $!f = few[0] + few[$u & 3u]; }"),
    R(STATEMENT, STRUCTURE, 3, KERNEL,
      "$[one.a = $u`one.b = $f`one.c = $s`records[$u & 3u].a += $u`records[$u & 3u].b = $f`records[$u & 3u] "
      "= one`one = records[$u & 3u]`one.small[$u & 1u] = $u];"),
    R(STATEMENT, STORE, 10, KERNEL, "$[$^u = $u`$^f = $f`$^i = $i`$^u += $u`$^f += $f];"),
    R(STATEMENT, STORE, 4, KERNEL, "$[$^h = $h`$^s = $s`$^c = $c`$^L = $L];"),
    R(STATEMENT, STORE_VECTOR, 3, INTERLEAVED_F, "((device float4*)out_f)[i] = $4;"),
    R(STATEMENT, STORE_VECTOR, 1, INTERLEAVED_F, "((device float2*)out_f)[i * 2u + $#1.u] = $2;"),
    R(STATEMENT, STORE_VECTOR, 2, INTERLEAVED_U, "((device uint4*)out_u)[i] = $U;"),
    R(STATEMENT, STORE_VECTOR, 2, INTERLEAVED_C, "((device uchar4*)out_c)[i] = $C;"),
    /* Matrices in memory, sums over a loop, arithmetic with their elements between products. */
    R(STATEMENT, SIMD_MATRIX, 2, KERNEL,
      "{ simdgroup_float8x8 ma, mb, mc = make_filled_simdgroup_matrix<float, 8, 8>($#3.); simdgroup_half8x8 "
      "mh; "
      "simdgroup_load(ma, in_f + $#99., $[8`16`20`64], ulong2($#3., 0), $[true`false]); "
      "simdgroup_load(mh, in_h + $#99., $[8`24`40], ulong2(0), $[true`false]); "
      "for (uint j = 0; j < $[3u`5u`size / 32u + 1u]; j++) { "
      "simdgroup_load(mb, in_f + j * 8u + $#9., 64, ulong2(0, $#9.), $[true`false]); "
      "simdgroup_multiply_accumulate(mc, ma, mb, mc); $[`simdgroup_multiply_accumulate(mc, mh, mb, mc); ]"
      "$[`mc.thread_elements() *= 0.5f;`mc.thread_elements() *= float2(j, 2);`mc.thread_elements() += "
      "float2($f);"
      "`mc.thread_elements() = max(mc.thread_elements(), float2(lane));`simdgroup_multiply(ma, mc, mh);"
      "`ma.thread_elements() = mc.thread_elements().yx;] } $!f += mc.thread_elements()[$[0`1`$u & 1u]]; }"),
    R(STATEMENT, SIMD_MATRIX, 1, KERNEL,
      "{ simdgroup_float8x8 ma[2], mb[2], mc[4]; for (uint j = 0; j < 4; j++) mc[j] = "
      "make_filled_simdgroup_matrix<float, 8, 8>(j); for (uint k = 0; k < $[2u`8u]; k++) { "
      "for (uint j = 0; j < 2; j++) simdgroup_load(ma[j], in_f + $[k`group] * 8u + j * 512u, 64); "
      "for (uint j = 0; j < 2; j++) simdgroup_load(mb[j], in_f + k * 128u + j * 8u, 16); "
      "for (uint j = 0; j < 4; j++) simdgroup_multiply_accumulate(mc[j], ma[j / $[2`1 % 2]], mb[j % 2], "
      "mc[j]); } "
      "$!f += mc[$#3.].thread_elements().$[x`y] - mc[1].thread_elements().y; }"),
    /* Neighbouring elements of one thread. */
    R(STATEMENT, LOAD_VECTOR, 2, KERNEL,
      "{ uint j = ($[i`$u`tid * 5u`lane * 16u`group + lane * 3u]) % 4000u * $[1u`2u`4u]; "
      "for (uint k = 0; k < $[2u`4u`7u`8u]; k++) $[$!u += uint(in_f[j + k])`$!u ^= in_u[j + k] << k`"
      "$!u += in_s[j + k] * in_c[j + k]`$!u += uint(in_h[j + k])`$!u += in_c[j + k] << (k * 3u)`"
      "$!u += uint(in_l[j + k])]; }"),
    /* Places that follow from the thread's number. */
    R(STATEMENT, LOAD_VECTOR, 2, KERNEL,
      "{ uint j = $[tid / 6u * 7u + tid % 6u`((tid & 1u) << 8 | tid / 2u) | $[56u`568u]`(tid ^ 21u) & "
      "$[63u`~6u]`"
      "tid * tid % 8u + tid / 3u`tid < 64u ? tid * 2u : tid`(tid - 40u) / 4u % 16u`tid * 5u >> 2]; "
      "$[$!u += in_u[j + $#9.]`$!f += in_f[j % 8192u]`$!u += in_c[j] + in_s[j + 2u]`if (j % 64u < 32u) $!u "
      "^= j]; }"),
    R(STATEMENT, LOAD_EDGE, 2, KERNEL,
      "{ int j = int(i) + $[-9`-5`-1`1`5`-40]; if (j >= 0 && j < $#999.) $!u ^= in_u[j]; }"),
    R(STATEMENT, LOAD_EDGE, 2, KERNEL, "{ uint j = i - $#40.u; $!u = j < 900u ? in_u[j] : 3u; }"),
    R(STATEMENT, LOAD_EDGE, 2, KERNEL, "{ uint j = $u; if (j < 16384u && in_i[j] > 3) $!u += j; }"),
    R(STATEMENT, LOAD_EDGE, 1, KERNEL, "{ long j = long($i); if (j >= 0 && j < 16384) $!f += in_f[j]; }"),
    R(STATEMENT, LOAD_EDGE, 1, KERNEL,
      "{ uint j = i + 16384u - threads + $#3.u; if (j < 16384u) $!u += in_u[j]; }"),
    R(STATEMENT, LOAD_EDGE, 1, KERNEL, "{ uint j = i * 0x10000001u + $%; if (j < 16384u) $!f += in_f[j]; }"),
    R(STATEMENT, LOAD_EDGE, 1, KERNEL,
      "for (int j = -2; j <= 2; j++) { int at = int(i) + j; if (at < 0 || at >= int(threads)) continue; $!f "
      "+= in_f[at]; }"),
    R(STATEMENT, LOAD_EDGE, 1, KERNEL,
      "if (i < 4090u) { const device float *from = in_f + 16383 - i; $!f += from[0] - from[-int($u & 7u)]; "
      "}"),
    R(STATEMENT, LOAD_SELECTED, 2, KERNEL,
      "{ int j = int(i) + $[-9`-1`7`-300`16200]; uint v = in_u[j]; $^u = (j >= 0 && j < 16384) ? v : 7u; }"),
    R(STATEMENT, LOAD_SELECTED, 2, KERNEL,
      "{ int j = $i; float v = in_f[j]; $^f = (j >= 0 && j < 16384) ? v : 0.5f; }"),
    R(STATEMENT, LOAD_SELECTED, 1, KERNEL,
      "{ int j = $i; half v = in_h[j]; $^f = (uint(j) < 16384u) ? float(v) : 0.0f; }"),
    R(STATEMENT, LOAD_FOLDED, 2, KERNEL,
      "{ int j = int(i) + $[-9`-1`7`-300`16200]; uint v = in_u[j]; $!u += (j >= 0 && j < 16384) ? v : 7u; }"),
    R(STATEMENT, LOAD_FOLDED, 2, KERNEL,
      "{ int j = $i; float v = in_f[j]; $!f += (j >= 0 && j < 16384) ? v : 0.5f; }"),
    /* Accumulators of 16 bits that live across loops whose trip counts differ by thread: -0 becomes 0. */
    R(STATEMENT, HALF_REAL, 3, KERNEL,
      "{ bfloat total = bfloat($f), most = bfloat($~); uint trips = $u & 7u; for (uint row = 0; row < ($V & "
      "3u); "
      "row++) $<for (uint j = 0; j < trips; j++) { total += bfloat(in_f[(row * 8u + j + ($u)) & 4095u]); "
      "most = "
      "$[total > most ? total : most`max(most, total) + bfloat(0.0f)`fma(total, bfloat($~), most)`bfloat($i) "
      "* most]; "
      "$[`if (total > bfloat($~)) break;`if (most != most) continue;`trips -= total < most;] }$> $!f = "
      "float(total "
      "$[+`-`*`/] most); }"),
    R(STATEMENT, HALF_REAL, 2, KERNEL,
      "{ half total = half($f), least = half($~); uint trips = $u & 7u; $<for (uint row = 0; row < trips; "
      "row++) for "
      "(uint j = row; j < ($u & 3u); j++) { total += half(in_h[(row * 8u + j) & 4095u]); least = $[total < "
      "least ? "
      "total : least`min(least, total) + half(0.0f)`half(float(total) * $~)]; $[`if (total > half($~)) "
      "break;] }$> "
      "$!f = float(total $[+`-`*`/] least); }"),
    R(STATEMENT, HALF_REAL, 2, KERNEL,
      "{ bfloat4 four = bfloat4(bfloat($f), bfloat($i), bfloat($~), bfloat($u)); uint trips = $u & 7u; $<for "
      "(uint j = 0; j < trips; j++) four = $B ? four.yzwx + bfloat4(bfloat($f)) : four * four;$> $!f = "
      "float(four.x + "
      "four.y * four.z - four.w); }"),
    R(STATEMENT, HALF_REAL, 1, KERNEL,
      "{ bfloat chosen; switch ($u & 3u) { case 0: chosen = bfloat($f); break; case 1: chosen = bfloat($~); "
      "break; "
      "case 2: chosen = bfloat($u); break; default: chosen = bfloat(float($h)); } bfloat few[4] = {chosen, "
      "bfloat($~), "
      "chosen, bfloat($i)}; few[$u & 3u] += chosen; $!f = float(few[$u & 3u]); $!u = uint(few[1]); }"),
    R(STATEMENT, ATOMIC, 3, KERNEL,
      "$[atomic_fetch_add_explicit(&cells[$u & 15u], $u`atomic_fetch_sub_explicit(&cells[$V & 15u], "
      "$u`atomic_fetch_min_explicit(&cells[16u + ($u & 7u)], $u`atomic_fetch_max_explicit(&cells[24u + ($u & "
      "7u)], $u], memory_order_relaxed);"),
    R(STATEMENT, ATOMIC, 2, KERNEL,
      "$[atomic_fetch_and_explicit(&cells[32u + ($u & 7u)], $u`atomic_fetch_or_explicit(&cells[40u + ($V & "
      "7u)], $u`atomic_fetch_xor_explicit(&cells[48u + $k % 8u], $u`atomic_fetch_add_explicit(&cells[$#15.], "
      "1u], memory_order_relaxed);"),
    R(STATEMENT, ATOMIC, 2, KERNEL,
      "$[atomic_fetch_min_explicit(&cells_i[$u & 15u], $i`atomic_fetch_max_explicit(&cells_i[16u + ($V & "
      "15u)], $i`atomic_fetch_add_explicit(&cells_i[32u + ($u & 31u)], $i], memory_order_relaxed);"),
    R(STATEMENT, ATOMIC, 1, KERNEL,
      "{ uint ticket = $#3.u; atomic_fetch_add_explicit(&cells[60u + ticket], "
      "atomic_fetch_add_explicit(&cells[56u + ticket], 1u, memory_order_relaxed), memory_order_relaxed); }"),
    R(STATEMENT, ATOMIC_OWN, 3, KERNEL,
      "$!i = "
      "atomic_$[fetch_add`fetch_sub`fetch_min`fetch_max`fetch_and`fetch_or`fetch_xor`exchange]_explicit(&own["
      "i], int($u), memory_order_relaxed);"),
    R(STATEMENT, ATOMIC_OWN, 1, KERNEL,
      "{ int old = $i; if (atomic_compare_exchange_weak_explicit(&own[i], &old, int($u), "
      "memory_order_relaxed, memory_order_relaxed)) $!u++; $!i = old; }"),
    R(STATEMENT, ATOMIC_OWN, 1, KERNEL, "atomic_store_explicit(&own[i], int($u), memory_order_relaxed);"),
    R(STATEMENT, SIMD_BARRIER, 2, KERNEL, "simdgroup_barrier(mem_flags::mem_$[none`threadgroup]);"),
};

const int rule_count = sizeof rules / sizeof *rules;
