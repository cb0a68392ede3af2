// SPDX-License-Identifier: Apache-2.0
// Plain kernels that fused epilogues are checked and timed against. Compiled by the tests with NVRTC behind the text of
// reference.cu, whose types and functions they use.

// Numbered as the enums of key.h.
enum { OP_GEMM, OP_ACT, OP_DACT, OP_GATED, OP_DGATED };
enum {
    ACT_NONE, ACT_RELU, ACT_RELU_SQ, ACT_GELU_TANH, ACT_GELU_ERF, ACT_SILU, ACT_QUICK_GELU, ACT_SIGMOID, ACT_TANH,
    ACT_SWIGLU, ACT_SWIGLU_OAI, ACT_GEGLU, ACT_REGLU, ACT_GLU
};
enum { GATE_NONE, GATE_INTERLEAVED, GATE_HALVES };
enum { BIAS_NONE, BIAS_ROW_F32, BIAS_ROW_F16, BIAS_ROW_BF16, BIAS_COL_F32, BIAS_COL_F16, BIAS_COL_BF16 };
enum { SCALE_NONE, SCALE_TENSOR, SCALE_ROW, SCALE_COL, SCALE_ROW_COL };
enum { QUANT_NONE, QUANT_SCALE, QUANT_AMAX };

__device__ bool is_gated(int op)
{
    return op == OP_GATED || op == OP_DGATED;
}

// Column of pair j among 2 * pairs columns.
__device__ int column_of(int gate, int j, int pairs, int up)
{
    return gate == GATE_HALVES ? j + up * pairs : 2 * j + up;
}

// ---- Exact: everything small integers times powers of two

// 1/2, 1 or 2.
__device__ float scale_value(u64 i, u32 seed)
{
    return exp2f((float)(int)(hash(i, seed) % 3) - 1);
}

// Factors of `batch` vectors of `extent`.
extern "C" __global__ void fill_scales(float *data, int batch, int extent, s64 batch_stride, u32 seed)
{
    const u64 count = (u64)batch * extent;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x)
        data[i / extent * batch_stride + i % extent] = scale_value(i, seed);
}

// What an output must hold; laid out as in fused.c. C is what fill_matrix makes from seed_c, bias what it makes of one row a
// batch from seed_bias; factors are those of fill_scales.
struct expected {
    const float *product; // (batch, m, n) packed
    const void *buffer;   // of `count` elements; the output starts at `first`, everything around it is poison
    u64 count, first;
    s64 batch_stride, row_stride, column_stride;
    const float *quant_scale;
    u32 *amax, *wrong;
    int m, n, batch, op, act, gate, bias, scale, quant;
    int bias_shared, scale_a_shared, scale_b_shared; // by all batches
    int dtype, columns, post, last;                  // the output: PostAct or D, and whether quant applies to it
    float alpha, beta;
    u32 seed_c, seed_bias, seed_a, seed_b;
};

// Element of A B^T after scale, alpha, beta and bias.
__device__ float fused_value(const expected &e, u64 l, int r, int c)
{
    const u64 la = e.scale_a_shared ? 0 : l, lb = e.scale_b_shared ? 0 : l, lv = e.bias_shared ? 0 : l;
    float v = e.product[(l * e.m + r) * e.n + c];
    if (e.scale == SCALE_TENSOR)
        v *= scale_value(la * e.m, e.seed_a) * scale_value(lb * e.n, e.seed_b);
    if (e.scale == SCALE_ROW || e.scale == SCALE_ROW_COL)
        v *= scale_value(la * e.m + r, e.seed_a);
    if (e.scale == SCALE_COL || e.scale == SCALE_ROW_COL)
        v *= scale_value(lb * e.n + c, e.seed_b);
    v = e.alpha == 0 ? 0 : e.alpha * v;
    if (e.op != OP_DACT && e.op != OP_DGATED && e.beta != 0)
        v += e.beta * value_of((l * e.m + r) * e.n + c, 0, e.seed_c);
    if (e.bias >= BIAS_COL_F32)
        v += value_of(lv * e.n + c, 0, e.seed_bias);
    else if (e.bias >= BIAS_ROW_F32)
        v += value_of(lv * e.m + r, 0, e.seed_bias);
    return v;
}

__device__ float exact_function(int act, float x)
{
    return act == ACT_NONE ? x : act == ACT_RELU_SQ ? fmaxf(x, 0) * x : fmaxf(x, 0);
}

__device__ float exact_gradient(int act, float x, float g)
{
    return act == ACT_NONE ? g : x <= 0 ? 0 : act == ACT_RELU_SQ ? 2 * g * x : g;
}

// Element (l, r, c) of D or PostAct; of the functions none, relu, relu_sq and reglu.
__device__ float fused_output(const expected &e, u64 l, int r, int c)
{
    if (e.op == OP_GEMM || (!e.post && e.op != OP_DACT && e.op != OP_DGATED))
        return fused_value(e, l, r, c);
    if (e.op == OP_ACT)
        return exact_function(e.act, fused_value(e, l, r, c));
    if (e.op == OP_DACT) {
        const float x = value_of((l * e.m + r) * e.n + c, 0, e.seed_c);
        return e.post ? exact_function(e.act, x) : exact_gradient(e.act, x, fused_value(e, l, r, c));
    }
    if (e.op == OP_GATED) {
        const int pairs = e.n / 2;
        return fmaxf(fused_value(e, l, r, column_of(e.gate, c, pairs, 0)), 0) *
               fused_value(e, l, r, column_of(e.gate, c, pairs, 1));
    }
    const int up = e.post ? 0 : e.gate == GATE_HALVES ? c / e.n : c % 2;
    const int j = e.post ? c : e.gate == GATE_HALVES ? c % e.n : c / 2;
    const u64 row = (l * e.m + r) * 2 * e.n;
    const float x = value_of(row + column_of(e.gate, j, e.n, 0), 0, e.seed_c);
    const float y = value_of(row + column_of(e.gate, j, e.n, 1), 0, e.seed_c);
    if (e.post)
        return fmaxf(x, 0) * y;
    const float g = fused_value(e, l, r, j);
    return up ? g * fmaxf(x, 0) : x <= 0 ? 0 : g * y;
}

// Compares a whole buffer with what it must hold; adds the number of wrong elements to *wrong. Raises *amax for the last
// output.
extern "C" __global__ void compare_output(const struct expected e)
{
    const s64 ld = e.row_stride == 1 ? e.column_stride : e.row_stride;
    const int bytes = bytes_of(e.dtype);
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < e.count; i += (u64)gridDim.x * blockDim.x) {
        u32 want = bytes == 4 ? 0xffffffffu : bytes == 2 ? 0xffffu : 0xffu;
        if (i >= e.first) {
            const u64 at = i - e.first, l = e.batch > 1 ? at / e.batch_stride : 0, in_batch = at - l * e.batch_stride;
            const u64 line = in_batch / ld, inner = in_batch - line * ld;
            const u64 r = e.row_stride == 1 ? inner : line, c = e.row_stride == 1 ? line : inner;
            if (l < e.batch && r < e.m && c < e.columns) {
                float q = fused_output(e, l, (int)r, (int)c);
                if (e.last && e.quant == QUANT_AMAX)
                    atomicMax(e.amax, __float_as_uint(fabsf(q)));
                if (e.last && e.quant != QUANT_NONE)
                    q *= *e.quant_scale;
                want = encode(q, e.dtype);
            }
        }
        const u32 got = get(e.buffer, i, e.dtype);
        if (got != want && !(decode(got, e.dtype) == 0 && decode(want, e.dtype) == 0)) // the sign of a zero is free
            atomicAdd(e.wrong, 1u);
    }
}

// words: the kernel's amax and the expected one.
extern "C" __global__ void compare_amax(const u32 *words, u32 *wrong)
{
    if (words[0] != words[1])
        atomicAdd(wrong, 1u);
}

// ---- Error: the functions in f64, and as separate operations in a 16-bit type give them

__device__ double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

// f(x) and f'(x).
__device__ void function_of(int act, double x, double *value, double *slope)
{
    const double c1 = 0.79788456080286535588, c2 = 0.044715 * c1; // sqrt(2 / pi)
    double s = 0;
    switch (act) {
    case ACT_RELU:
    case ACT_REGLU:
        *value = x <= 0 ? 0 : x;
        *slope = x <= 0 ? 0 : 1;
        return;
    case ACT_RELU_SQ:
        *value = x <= 0 ? 0 : x * x;
        *slope = x <= 0 ? 0 : 2 * x;
        return;
    case ACT_GELU_TANH:
    case ACT_GEGLU:
        s = sigmoid(2 * x * (c1 + c2 * x * x));
        *value = x * s;
        *slope = s + 2 * x * s * (1 - s) * (c1 + 3 * c2 * x * x);
        return;
    case ACT_GELU_ERF:
        s = 0.5 * erfc(-x * 0.70710678118654752440);
        *value = x * s;
        *slope = s + x * 0.39894228040143267794 * exp(-0.5 * x * x); // 1 / sqrt(2 pi)
        return;
    case ACT_SILU:
    case ACT_SWIGLU:
        s = sigmoid(x);
        *value = x * s;
        *slope = s + x * s * (1 - s);
        return;
    case ACT_QUICK_GELU:
    case ACT_SWIGLU_OAI:
        s = sigmoid(1.702 * x);
        *value = x * s;
        *slope = s + 1.702 * x * s * (1 - s);
        return;
    case ACT_SIGMOID:
    case ACT_GLU:
        s = sigmoid(x);
        *value = s;
        *slope = s * (1 - s);
        return;
    case ACT_TANH:
        s = tanh(x);
        *value = s;
        *slope = 1 - s * s;
        return;
    default:
        *value = x;
        *slope = 1;
    }
}

// Operands of A B^T whose sums are exactly known. A (m, 16): two ones a row, in columns r % 8 and r % 8 + 8. B (n, 16), b[c][k]
// for k < 8 a normal value of 8 bits times scale, for k >= 8 one of about 2^-10 of it, so that their sum has 20 bits.
// step > 0 (for row 0 alone): b[c][0] is `fixed`, but for every step-th c the bf16 of bits c / step where n is 65536 times
// step, and all else zero.
extern "C" __global__ void fill_terms(u16 *a, u16 *b, int m, int n, int step, float fixed, float scale, u32 seed)
{
    const u64 count = (u64)(m + n) * 16;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        const int line = (int)(i / 16), k = (int)(i % 16);
        if (line < m) {
            a[i] = line % 8 == k % 8 && (step == 0 || k == 0) ? 0x3f80 : 0;
            continue;
        }
        const u64 c = line - m;
        const float high = rounded(scale * value_of(c * 8 + k % 8, 1, seed), BF16);
        u16 bits = k < 8 ? (u16)encode(high, BF16)
                         : (u16)encode(high * (value_of(c * 8 + k % 8, 0, seed + 1) + 3) * 3e-4f, BF16);
        if (step > 0 && c % step == 0 && step * 65536ull == n)
            bits = k == 0 || c / step == 0x8000 ? (u16)(c / step) : 0;
        else if (step > 0)
            bits = k == 0 ? (u16)encode(fixed, BF16) : 0;
        b[c * 16 + k] = bits;
    }
}

// C[r][c] = fixed, but for every step-th c the bf16 of bits c / step.
extern "C" __global__ void fill_patterns(void *data, int rows, int columns, int dtype, int step, float fixed)
{
    const u64 count = (u64)rows * columns;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        const u32 c = (u32)(i % columns);
        put(data, i, dtype, encode(c % step == 0 ? decode(c / step, BF16) : fixed, dtype));
    }
}

// Products in f64 and in f32 (packed). Blocks of 16 x 16 threads, each for 64 x 64 elements; grid (n / 64, m / 64).
extern "C" __global__ void multiply_both(const struct operand a, const struct operand b, int m, int n, int k, double *exact,
                                         float *plain)
{
    __shared__ float sa[16][65], sb[16][65];
    const int row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    double sums[4][4] = {};
    float singles[4][4] = {};
    for (int k0 = 0; k0 < k; k0 += 16) {
        load_tile(sa, a, 0, row0, m, k0, k);
        load_tile(sb, b, 0, column0, n, k0, k);
        __syncthreads();
        for (int q = 0; q < 16; q++) {
#pragma unroll
            for (int i = 0; i < 16; i++) {
                const float x = sa[q][threadIdx.y + i / 4 * 16], y = sb[q][threadIdx.x + i % 4 * 16];
                sums[i / 4][i % 4] += (double)x * y;
                singles[i / 4][i % 4] += x * y;
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const int row = row0 + threadIdx.y + i / 4 * 16, column = column0 + threadIdx.x + i % 4 * 16;
        if (row >= m || column >= n)
            continue;
        exact[(u64)row * n + column] = sums[i / 4][i % 4];
        plain[(u64)row * n + column] = singles[i / 4][i % 4];
    }
}

// What one output did; words are bits of non-negative f32 where not counts.
struct statistics {
    u32 error, plain_error; // largest |out - ref| and |pt - ref|
    u32 relative;           // largest |out - ref| / |ref| where |ref| > 1e-3
    u32 scaled;             // largest |out - ref| less what rounding to the type takes, over `size` below
    u32 lost;               // number of outputs that are not finite although ref is
};

// Laid out as in epilogues_error.c.
struct measured {
    struct operand c, d, p; // packed or not; dtype 0: absent
    const double *exact;    // (m, n) packed: A B^T
    const float *plain;
    const void *bias; // n values of bf16, or NULL
    int m, n, op, act, gate;
    float x_max;               // of |x| (and |gate|) that `statistics` counts; lost counts all
    struct statistics *result; // of D (or the gradient of gates), of the gradient of ups, of PostAct
};

// Half a unit in the last place of a type at |value|.
__device__ double half_ulp(int dtype, double value)
{
    if (dtype == F32)
        return 0;
    return dtype == F16 ? fmax(fabs(value) * 4.8829e-4, 2.9803e-8) : fabs(value) * 3.9063e-3;
}

__device__ void measure_one(const measured &p, int which, const operand &out, int r, int c, double ref, float pt, double size,
                            bool counts)
{
    if (out.dtype == 0)
        return;
    struct statistics *const s = &p.result[which];
    const double got = element(out, 0, r, c);
    if (!(fabs(ref) < (out.dtype == F16 ? 65504.0 : 3e38)))
        return;
    if (!(fabs(got) <= 3.5e38)) {
        atomicAdd(&s->lost, 1u);
        if (counts)
            atomicMax(&s->scaled, 0x7f800000u);
        return;
    }
    if (!counts)
        return;
    const double error = fabs(got - ref);
    atomicMax(&s->error, __float_as_uint((float)error));
    atomicMax(&s->plain_error, __float_as_uint(error_of(pt, ref)));
    if (fabs(ref) > 1e-3)
        atomicMax(&s->relative, __float_as_uint((float)(error / fabs(ref))));
    atomicMax(&s->scaled,
              __float_as_uint((float)(fmax(error - half_ulp(out.dtype, ref), 0.0) / fmax(size, fabs(ref)))));
}

// A value of A B^T with the bias: in f64, and rounded to bf16 after each operation.
__device__ double biased(const measured &p, int r, int c, float *pt)
{
    const u64 i = (u64)r * p.n + c;
    *pt = rounded(p.plain[i], BF16);
    if (p.bias == nullptr)
        return p.exact[i];
    const float bias = decode(get(p.bias, c, BF16), BF16);
    *pt = rounded(*pt + bias, BF16);
    return p.exact[i] + bias;
}

__device__ double larger(double a, double b)
{
    return fmax(fmax(1.0, fabs(a)), fabs(b));
}

__device__ void measure_value(const measured &p, int r, int c)
{
    float pt;
    double v = biased(p, r, c, &pt), f, slope, f_pt, slope_pt;
    if (p.op == OP_ACT) {
        const bool counts = fabs(v) <= p.x_max;
        function_of(p.act, v, &f, &slope);
        function_of(p.act, pt, &f_pt, &slope_pt);
        measure_one(p, 0, p.d, r, c, v, pt, larger(v, 0), counts);
        measure_one(p, 2, p.p, r, c, f, rounded((float)f_pt, BF16), larger(v, 0), counts);
        return;
    }
    const double x = element(p.c, 0, r, c);
    const bool counts = fabs(x) <= p.x_max;
    function_of(p.act, x, &f, &slope);
    measure_one(p, 0, p.d, r, c, slope * v, rounded((float)(slope * pt), BF16), larger(x, 0) * larger(v, 0), counts);
    measure_one(p, 2, p.p, r, c, f, rounded((float)f, BF16), larger(x, 0), counts);
}

__device__ void measure_pair(const measured &p, int r, int j)
{
    const bool back = p.op == OP_DGATED;
    const int pairs = back ? p.n : p.n / 2, cx = column_of(p.gate, j, pairs, 0), cy = column_of(p.gate, j, pairs, 1);
    float x_pt, y_pt, g_pt = 0;
    double g = 0, f, slope, f_pt, slope_pt;
    const double x = back ? x_pt = element(p.c, 0, r, cx) : biased(p, r, cx, &x_pt);
    double y = back ? y_pt = element(p.c, 0, r, cy) : biased(p, r, cy, &y_pt);
    const bool counts = fabs(x) <= p.x_max && fabs(y) <= p.x_max;
    if (back)
        g = biased(p, r, j, &g_pt);
    else if (p.d.dtype != 0) {
        measure_one(p, 0, p.d, r, cx, x, x_pt, larger(x, 0), counts);
        measure_one(p, 1, p.d, r, cy, y, y_pt, larger(y, 0), counts);
    }
    if (p.act == ACT_SWIGLU_OAI) {
        y += 1;
        y_pt = rounded(y_pt + 1, BF16);
    }
    function_of(p.act, x, &f, &slope);
    function_of(p.act, x_pt, &f_pt, &slope_pt);
    const float gate_pt = rounded((float)f_pt, BF16);
    const double size = larger(x, 0) * larger(y, 0);
    measure_one(p, 2, p.p, r, j, f * y, rounded(gate_pt * y_pt, BF16), size, counts);
    if (!back)
        return;
    measure_one(p, 0, p.d, r, cx, slope * y * g, rounded((float)(slope_pt * rounded(g_pt * y_pt, BF16)), BF16),
                size * larger(g, 0), counts);
    measure_one(p, 1, p.d, r, cy, f * g, rounded(g_pt * gate_pt, BF16), size * larger(g, 0), counts);
}

extern "C" __global__ void measure(const struct measured p)
{
    const int columns = p.op == OP_GATED ? p.n / 2 : p.n;
    const u64 count = (u64)p.m * columns;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        const int r = (int)(i / columns), c = (int)(i % columns);
        if (is_gated(p.op))
            measure_pair(p, r, c);
        else
            measure_value(p, r, c);
    }
}

// ---- Speed: an elementwise kernel behind a GEMM, bf16, 16-byte accesses

__device__ float fast_sigmoid(float x)
{
    return __fdividef(1.0f, 1.0f + __expf(-x));
}

__device__ float fast_function(int act, float x)
{
    if (act == ACT_GELU_TANH)
        return x * fast_sigmoid(2 * x * (0.7978845608f + 0.0356774081f * x * x));
    return x * fast_sigmoid(x);
}

__device__ u32 pack(float low, float high)
{
    u32 bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
}

__device__ float low_of(u32 bits)
{
    return __uint_as_float(bits << 16);
}

__device__ float high_of(u32 bits)
{
    return __uint_as_float(bits & 0xffff0000u);
}

template <int ACT> __device__ void elementwise(const uint4 *in, uint4 *out, u64 count)
{
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        const uint4 v = in[i];
        const u32 words[4] = {v.x, v.y, v.z, v.w};
        u32 results[4];
#pragma unroll
        for (int q = 0; q < 4; q++)
            results[q] = pack(fast_function(ACT, low_of(words[q])), fast_function(ACT, high_of(words[q])));
        out[i] = make_uint4(results[0], results[1], results[2], results[3]);
    }
}

// out[i] = f(in[i]) for 8 * count values.
extern "C" __global__ void elementwise_gelu(const uint4 *in, uint4 *out, u64 count)
{
    elementwise<ACT_GELU_TANH>(in, out, count);
}

extern "C" __global__ void elementwise_silu(const uint4 *in, uint4 *out, u64 count)
{
    elementwise<ACT_SILU>(in, out, count);
}

__device__ u32 swiglu_of(u32 gates, u32 ups)
{
    return pack(fast_function(ACT_SILU, low_of(gates)) * low_of(ups),
                fast_function(ACT_SILU, high_of(gates)) * high_of(ups));
}

// Two gates and two ups of two interleaved pairs.
__device__ u32 swiglu_pairs(u32 first, u32 second)
{
    return swiglu_of(__byte_perm(first, second, 0x5410), __byte_perm(first, second, 0x7632));
}

// 8 * count outputs of 16 * count values, gate and up interleaved.
extern "C" __global__ void elementwise_swiglu(const uint4 *in, uint4 *out, u64 count)
{
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        const uint4 v = in[2 * i], w = in[2 * i + 1];
        out[i] = make_uint4(swiglu_pairs(v.x, v.y), swiglu_pairs(v.z, v.w), swiglu_pairs(w.x, w.y), swiglu_pairs(w.z, w.w));
    }
}

// The same, rows of 8 * half gates, then as many ups.
extern "C" __global__ void elementwise_swiglu_halves(const uint4 *in, uint4 *out, u64 count, u64 half)
{
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x) {
        const u64 row = i / half, at = row * 2 * half + (i - row * half);
        const uint4 g = in[at], u = in[at + half];
        out[i] = make_uint4(swiglu_of(g.x, u.x), swiglu_of(g.y, u.y), swiglu_of(g.z, u.z), swiglu_of(g.w, u.w));
    }
}
