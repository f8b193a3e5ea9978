kernel void past_the_end(global float *o) { uint i = get_global_id(0); o[i + 1] = i; }
kernel void local_past(global float *o) {
  local float s[64];
  uint t = get_local_id(0);
  s[t + 1] = t;
  barrier(CLK_LOCAL_MEM_FENCE);
  o[get_global_id(0)] = s[t];
}
kernel void private_past(global const int *x, global float *o) {
  uint i = get_global_id(0);
  float a[8];
  for (int k = 0; k < 8; k++) a[k] = k;
  o[i] = a[x[i]];
}
kernel void no_barrier(global const float *a, global float *o) {
  local float s[128];
  uint t = get_local_id(0);
  s[t] = a[t];
  o[t] = s[127 - t];
}
kernel void groups_race(global int *o) { o[0] = get_group_id(0); }
kernel void never_set(global const float *a, global float *o) {
  uint i = get_global_id(0);
  float v;
  if (a[i] > 3) v = 1;
  o[i] = v;
}
kernel void missed_barrier(global float *o) {
  local float s[64];
  uint t = get_local_id(0);
  s[t] = t;
  if (t < 40) barrier(CLK_LOCAL_MEM_FENCE);
  o[t] = s[t];
}
kernel void overflow(global const int *a, global long *o) { uint i = get_global_id(0); o[i] = a[i] * 100000000; }
kernel void misaligned(global uchar *b, global float *o) { uint i = get_global_id(0); o[i] = *(global float *)(b + 4 * i + 1); }
kernel void unwritten(global float *o) { uint i = get_global_id(0); if (i != 5) o[i] = 1; }
