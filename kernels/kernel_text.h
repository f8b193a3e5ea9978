/* The text of the shipped kernels and of what src/ops generates kernels from, embedded by embed.py: one
 * string per file, named after it. */
#ifndef SMELT_KERNELS_KERNEL_TEXT_H
#define SMELT_KERNELS_KERNEL_TEXT_H

extern const char kernel_text_accumulate[];
extern const char kernel_text_attention[];
extern const char kernel_text_attention_host[];
extern const char kernel_text_attention_host_few[];
extern const char kernel_text_attention_parts[];
extern const char kernel_text_attention_split[];
extern const char kernel_text_attention_vjp_warpgroups[];
extern const char kernel_text_attention_warpgroups[];
extern const char kernel_text_complex64[];
extern const char kernel_text_dense_cholesky[];
extern const char kernel_text_dense_copy[];
extern const char kernel_text_dense_lu[];
extern const char kernel_text_dense_lu_small[];
extern const char kernel_text_dense_product[];
extern const char kernel_text_dense_qr[];
extern const char kernel_text_dense_qr_small[];
extern const char kernel_text_dense_solve[];
extern const char kernel_text_dense_tiles[];
extern const char kernel_text_exp[];
extern const char kernel_text_exp_strided[];
extern const char kernel_text_bilinear[];
extern const char kernel_text_flags[];
extern const char kernel_text_functions[];
extern const char kernel_text_grid_sample[];
extern const char kernel_text_grid_sample_vjp[];
extern const char kernel_text_cholesky[];
extern const char kernel_text_limbs[];
extern const char kernel_text_matmul[];
extern const char kernel_text_matmul_few[];
extern const char kernel_text_matmul_sizes[];
extern const char kernel_text_matmul_tiles[];
extern const char kernel_text_triangular_inverse[];
extern const char kernel_text_conv[];
extern const char kernel_text_delta[];
extern const char kernel_text_fft[];
extern const char kernel_text_hadamard[];
extern const char kernel_text_norm[];
extern const char kernel_text_rope[];
extern const char kernel_text_sample[];
extern const char kernel_text_radix[];
extern const char kernel_text_scan[];
extern const char kernel_text_softmax[];
extern const char kernel_text_sort[];
extern const char kernel_text_team[];
extern const char kernel_text_naive[];
extern const char kernel_text_coalescing[];
extern const char kernel_text_tiled[];
extern const char kernel_text_transpose[];
extern const char kernel_text_tiled_register[];
extern const char kernel_text_block_tiled[];
extern const char kernel_text_block_tiled_vectorized[];
extern const char kernel_text_quantize[];
extern const char kernel_text_quantized_matmul[], kernel_text_quantized_matmul_fragments[],
    kernel_text_quantized_matmul_few[], kernel_text_quantized_parts[], kernel_text_flash_attention[];
extern const char kernel_text_random[];
extern const char kernel_text_tensor_core[];
extern const char kernel_text_best[];
extern const char kernel_text_best_tiles[];
extern const char kernel_text_best_warpgroups[];
extern const char kernel_text_thin[];

#endif
