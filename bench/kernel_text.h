/* The text of the benchmark's kernels, embedded by kernels/embed.py: one string a file, named after it. */
#ifndef SMELT_BENCH_KERNEL_TEXT_H
#define SMELT_BENCH_KERNEL_TEXT_H

extern const char kernel_text_elementwise_exp[];
extern const char kernel_text_softmax_tree[];
extern const char kernel_text_softmax_simd[];
extern const char kernel_text_matmul_tiled[];
extern const char kernel_text_matmul_register[];
extern const char kernel_text_matmul_simdgroup[];
extern const char kernel_text_tensor_product[];
extern const char kernel_text_chunk_inverse[];
extern const char kernel_text_sample_grid[];
extern const char kernel_text_divergent[];
extern const char kernel_text_gelu_chain[];
extern const char kernel_text_gpu_copy[];
extern const char kernel_text_gpu_plain[];
extern const char kernel_text_gpu_rows[];
extern const char kernel_text_gpu_sample[];
extern const char kernel_text_gpu_inverse[];
extern const char kernel_text_gpu_matmul_half[];
extern const char kernel_text_gpu_straight[];
extern const char kernel_text_gpu_matmul2d[];
extern const char kernel_text_multiply_adds[];
extern const char kernel_text_tensor_peak[];
extern const char kernel_text_tensor_fp8[];
extern const char kernel_text_peers_tensor[]; /* bench/tensor/peers_tensor.py */
extern const char kernel_text_ml_matvec[];
extern const char kernel_text_ml_matmat[];
extern const char kernel_text_ml_attention[], kernel_text_gpu_attention[];
extern const char kernel_text_ml_rows[];
extern const char kernel_text_peers[];                                   /* bench/peers.py */
extern const char kernel_text_peers_gpu[];                               /* bench/gpu/peers_gpu.py */
extern const char kernel_text_peers_attention[], kernel_text_peers_ml[]; /* bench/ml/peers_ml.py */
extern const char kernel_text_peers_ops[];                               /* bench/ops/peers_ops.py */
extern const char kernel_text_peers_linalg[];                            /* bench/linalg/peers_linalg.py */

#endif
