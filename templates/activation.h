/* SPDX-License-Identifier: Apache-2.0 */
/* Activation functions and their gradients, in f32; also compiled as host C by the tests. Everything comes of exp2_fast
 * and reciprocal, whose errors are about 1e-7 (docs/epilogues.md has the measured errors). NaN goes in and out. For a
 * function f of one value f_gradient(x, g) gives dx = g f'(x) and y = f(x); for one of gate and up the gradients of both,
 * and y. */
#pragma once

/* 1 / (1 + exp(-x)); exact in its limits. */
DEVICE float sigmoid(float x)
{
    return reciprocal(1 + exp2_fast(-1.4426950408889634f * x)); /* log2(e) */
}

DEVICE void sigmoid_gradient(float x, float g, float *dx, float *y)
{
    const float s = sigmoid(x);
    *dx = g * (s * (1 - s));
    *y = s;
}

DEVICE float none(float x)
{
    return x;
}

DEVICE void none_gradient(float x, float g, float *dx, float *y)
{
    *dx = g;
    *y = x;
}

/* max(x, 0), where NaN stays NaN; its gradient at 0 is 0. */
DEVICE float relu(float x)
{
    return max_nan(x, 0);
}

DEVICE void relu_gradient(float x, float g, float *dx, float *y)
{
    *dx = x <= 0 ? 0 : g;
    *y = relu(x);
}

/* max(x, 0)^2 */
DEVICE float relu_sq(float x)
{
    const float r = relu(x);
    return r * r;
}

DEVICE void relu_sq_gradient(float x, float g, float *dx, float *y)
{
    const float r = relu(x);
    *dx = 2 * g * r;
    *y = r * r;
}

/* x / (1 + exp(-x)); NaN for -Inf */
DEVICE float silu(float x)
{
    return x * sigmoid(x);
}

DEVICE void silu_gradient(float x, float g, float *dx, float *y)
{
    const float s = sigmoid(x), v = x * s;
    *dx = g * (s + v * (1 - s));
    *y = v;
}

/* x / (1 + exp(-1.702 x)) */
DEVICE float quick_gelu(float x)
{
    return x * sigmoid(1.702f * x);
}

DEVICE void quick_gelu_gradient(float x, float g, float *dx, float *y)
{
    const float s = sigmoid(1.702f * x), v = x * s;
    *dx = g * (s + 1.702f * (v * (1 - s)));
    *y = v;
}

/* 0.5 x (1 + tanh(u)) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3) */
DEVICE float gelu_tanh(float x)
{
    return x * sigmoid(2 * x * (0.7978845608028654f + 0.035677408136300125f * x * x));
}

DEVICE void gelu_tanh_gradient(float x, float g, float *dx, float *y)
{
    const float s = sigmoid(2 * x * (0.7978845608028654f + 0.035677408136300125f * x * x)), v = x * s;
    const float q = fminf(x * x, 1e4f); /* v (1 - s) is 0 long before; infinity times it would not be */
    *dx = g * (s + 2 * (v * (1 - s)) * (0.7978845608028654f + 0.10703222440890037f * q));
    *y = v;
}

/* exp(-x^2 / 2) and 1 - Phi(|x|), Phi the normal distribution: erfc by formula 7.1.26 of Abramowitz and Stegun (absolute
 * error 1.5e-7), which is a polynomial in 1 / (1 + 0.3275911 |x| / sqrt(2)) times that exponential. */
DEVICE float normal_tail(float x, float *exponential)
{
    const float t = reciprocal(1 + 0.23164189f * fabsf(x));
    *exponential = exp2_fast(-0.72134752044448170f * x * x); /* log2(e) / 2 */
    const float sum = 0.127414796f + t * (-0.142248368f + t * (0.7107068705f + t * (-0.7265760135f + t * 0.5307027145f)));
    return t * sum * *exponential;
}

/* x Phi(x), with 1 - Phi(|x|) as it is, so that nothing cancels for negative x */
DEVICE float gelu_erf(float x)
{
    float e;
    const float tail = normal_tail(x, &e);
    return x * (x > 0 ? 1 - tail : tail);
}

DEVICE void gelu_erf_gradient(float x, float g, float *dx, float *y)
{
    float e;
    const float tail = normal_tail(x, &e), phi = x > 0 ? 1 - tail : tail;
    *dx = g * (phi + x * (0.3989422804014327f * e)); /* 1 / sqrt(2 pi) */
    *y = x * phi;
}

/* 1 - 2 / (1 + exp(2 |x|)) with the sign of x; a series for small x, where that cancels */
DEVICE float hyperbolic_tangent(float x)
{
    const float far = 1 - 2 * reciprocal(1 + exp2_fast(2.8853900817779268f * fabsf(x))), q = x * x;
    const float near = x * (1 + q * (-0.3333333333f + q * (0.1333333333f + q * (-0.0539682540f + q * 0.0218694885f))));
    return fabsf(x) < 0.35f ? near : copysignf(far, x);
}

DEVICE void hyperbolic_tangent_gradient(float x, float g, float *dx, float *y)
{
    const float t = hyperbolic_tangent(x);
    *dx = g * (1 - t * t);
    *y = t;
}

DEVICE float swiglu(float gate, float up)
{
    return silu(gate) * up;
}

DEVICE void swiglu_gradient(float gate, float up, float g, float *dgate, float *dup, float *y)
{
    const float s = sigmoid(gate), a = gate * s;
    *dgate = (s + a * (1 - s)) * g * up;
    *dup = a * g;
    *y = a * up;
}

/* gate sigmoid(1.702 gate) (up + 1) */
DEVICE float swiglu_oai(float gate, float up)
{
    return quick_gelu(gate) * (up + 1);
}

DEVICE void swiglu_oai_gradient(float gate, float up, float g, float *dgate, float *dup, float *y)
{
    const float s = sigmoid(1.702f * gate), a = gate * s;
    *dgate = (s + 1.702f * (a * (1 - s))) * g * (up + 1);
    *dup = a * g;
    *y = a * (up + 1);
}

DEVICE float geglu(float gate, float up)
{
    return gelu_tanh(gate) * up;
}

DEVICE void geglu_gradient(float gate, float up, float g, float *dgate, float *dup, float *y)
{
    float d, v;
    gelu_tanh_gradient(gate, g, &d, &v);
    *dgate = d * up;
    *dup = v * g;
    *y = v * up;
}

DEVICE float reglu(float gate, float up)
{
    return relu(gate) * up;
}

DEVICE void reglu_gradient(float gate, float up, float g, float *dgate, float *dup, float *y)
{
    const float r = relu(gate);
    *dgate = gate <= 0 ? 0 : g * up;
    *dup = g * r;
    *y = r * up;
}

DEVICE float glu(float gate, float up)
{
    return sigmoid(gate) * up;
}

DEVICE void glu_gradient(float gate, float up, float g, float *dgate, float *dup, float *y)
{
    const float s = sigmoid(gate);
    *dgate = s * (1 - s) * g * up;
    *dup = s * g;
    *y = s * up;
}
