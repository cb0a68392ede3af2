/* SPDX-License-Identifier: Apache-2.0 */
/* Run-time parameters of what is fused behind the product, in kernels that have any. The host includes this very file. */
#pragma once

struct fused_params {
    void *p; /* PostAct */
    long long p_ld, p_batch_stride; /* elements */
    const void *bias;
    const float *scale_row, *scale_col; /* factors by row and by column of A B^T, or one each with scale=tensor */
    const float *quant_scale;
    float *amax;
    long long bias_batch_stride, scale_row_batch_stride, scale_col_batch_stride; /* elements; 0: shared */
    int p_cut; /* non-zero: PostAct's contiguous extent does not end on 16 bytes, so TMA may not store its end */
};
