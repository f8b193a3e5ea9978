// A kernel in a file that has everything else, too: render stages, textures and samplers, ray tracing, tables of functions.
// run: good -b 0:out:float32:7 -b 1=arange:float32:128 --grid 7
// expect buffer 0: 1 2 3 4 5 6 7
#include <metal_stdlib>
#include <metal_raytracing>
#include <simd/simd.h>
using namespace metal;
using namespace raytracing;

constexpr sampler smp(coord::normalized, address::clamp_to_edge, filter::linear, max_anisotropy(4));
constant constexpr sampler smp2(filter::nearest);
struct VIn { float3 position [[attribute(0)]]; float2 uv [[attribute(1)]]; };
struct VOut { float4 position [[position]]; float2 uv [[user(locn0)]]; float size [[point_size]]; uint layer [[render_target_array_index]]; half4 c [[flat]]; };
constant bool untextured [[function_constant(3)]];
constant bool textured = !untextured;
struct VGuarded { float3 position [[attribute(0)]]; float2 uv [[attribute(1), function_constant(textured)]]; };
typedef struct { float4 position [[position]]; float2 uv [[function_constant(textured), user(uv)]]; } VOutGuarded;
struct FOut { float4 color [[color(0)]]; float depth [[depth(any)]]; };
struct Material { texture2d<float> albedo [[id(0)]]; sampler s [[id(1)]]; float4 tint [[id(2)]]; device float *weights [[id(3)]]; array<texture2d<half>, 4> more [[id(4)]]; };
vertex VOut vs(VIn in [[stage_in]], constant float4x4 &mvp [[buffer(1)]], uint id [[vertex_id]], uint inst [[instance_id]]) {
  VOut o; o.position = mvp * float4(in.position, 1); o.uv = in.uv; return o;
}
vertex VOutGuarded vs3(VGuarded in [[stage_in]]) { VOutGuarded o; if (textured) o.uv = in.uv; return o; }
[[vertex]] float4 vs2(uint id [[vertex_id]]) { return float4(id); }
fragment FOut fs(VOut in [[stage_in]], texture2d<float, access::sample> t [[texture(0)]], bool front [[front_facing]], depth2d<float> shadow [[texture(1)]]) {
  FOut o; o.color = t.sample(smp, in.uv); if (o.color.a < 0.5) discard_fragment(); return o;
}
[[fragment]] half4 fs2(VOut in [[stage_in]]) { return half4(dfdx(in.uv.x)); }
float lookup(texture2d<float> t, float2 uv) { return t.sample(smp, uv, level(0)).x + t.sample(smp, uv, bias(1)).y + t.read(uint2(uv)).z + t.get_width(); }
float shadowed(depth2d<float> d, float3 p) { return d.sample_compare(smp, p.xy, p.z) + d.sample(smp, p.xy); }
static float4 cubic(texture2d_array<half> t, texturecube<float> c, texture3d<ushort, access::read> v) { return float4(t.sample(smp, float2(0), 1)) + c.sample(smp, float3(1)) + float4(v.read(uint3(0))); }
template <typename T> T gather_all(texture2d<T> t, float2 uv) { return t.gather(smp, uv, int2(0), component::x).x; }
inline float3 shade(constant Material &m, float2 uv) { return m.albedo.sample(m.s, uv).rgb * m.tint.rgb; }
void put(texture2d<float, access::write> t, uint2 p, float4 v) { t.write(v, p); }
bool hit(ray r, primitive_acceleration_structure s) { intersector<triangle_data> i; i.assume_geometry_type(geometry_type::triangle); i.accept_any_intersection(true); auto x = i.intersect(r, s); return x.type != intersection_type::none && x.distance > 0; }
[[visible]] float vis(float x) { return x + 1; }
[[intersection(bounding_box)]] bool isect(float3 o [[origin]]) { return true; }
kernel void trace(instance_acceleration_structure s [[buffer(0)]], texture2d<float, access::write> o [[texture(0)]], uint2 g [[thread_position_in_grid]]) { o.write(float4(0), g); }
kernel void trace2(primitive_acceleration_structure s [[buffer(0)]], device float *o [[buffer(1)]]) { o[0] = hit(ray(), s); }
kernel void table(visible_function_table<float(float)> t [[buffer(0)]], device float *o [[buffer(1)]]) { o[0] = t[0](1); }
kernel void blur(texture2d<half, access::read> in [[texture(0)]], texture2d<half, access::write> out [[texture(1)]], uint2 g [[thread_position_in_grid]]) { out.write(in.read(g), g); }
struct Commands { command_buffer buffer; compute_pipeline_state state; };
static void encode(constant Commands &c, uint i, device float *o) {
  compute_command command(c.buffer, i);
  command.reset();
  command.set_compute_pipeline_state(c.state);
  command.set_kernel_buffer(o, 0);
  command.concurrent_dispatch_threadgroups(uint3(1), uint3(32));
}
kernel void encodes(constant Commands &c [[buffer(0)]], device float *o [[buffer(1)]], uint i [[thread_position_in_grid]]) { encode(c, i, o); }
kernel void uses(device float *o [[buffer(0)]], constant Material &m [[buffer(1)]]) {
  o[0] = shade(m, float2(1)).x;
}
// Textures, samplers and tables take 8 bytes in a structure of arguments.
struct Tables { visible_function_table<float(float)> functions; instance_acceleration_structure scene; sampler s[2]; float last; };
static_assert(sizeof(Material) == 80 && sizeof(Tables) == 40 && sizeof(Commands) == 16, "resources");
kernel void good(device float *o [[buffer(0)]], constant Material &m [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  o[i] = vis(i) + m.tint.y - 5;
}
template <typename T> kernel void tk(texture2d<T> t [[texture(0)]], device T *o [[buffer(0)]]) { o[0] = t.read(uint2(0)).x; }
template [[host_name("tk_f")]] kernel void tk<float>(texture2d<float>, device float *);
kernel void tile(imageblock<float4> img, ushort2 t [[thread_position_in_threadgroup]]) {}
