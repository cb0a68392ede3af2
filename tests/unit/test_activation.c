/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of templates/activation.h as host C: every function and every gradient against f64, with the two
 * instructions that they are made of exact and at the ends of their errors. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Errors of the instructions in units of the last place: ptx_snippets/math.cuh. */
struct model {
    int exp2_ulps, reciprocal_ulps;
};

static const struct model models[] = {{0, 0}, {2, 1}, {-2, -1}, {2, -1}, {-2, 1}};
static struct model model;

static float flushed(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0, x) : x;
}

static float moved(float x, int ulps)
{
    for (; ulps > 0; ulps--)
        x = nextafterf(x, INFINITY);
    for (; ulps < 0; ulps++)
        x = nextafterf(x, -INFINITY);
    return x;
}

/* Zero and infinity are limits, which the instructions reach exactly: docs/epilogues.md. */
static bool is_limit(float x)
{
    return flushed(x) == 0 || isinf(x) || isnan(x);
}

static float exp2_fast(float x)
{
    const float y = (float)exp2((double)flushed(x));
    return flushed(is_limit(y) ? y : moved(y, model.exp2_ulps));
}

/* 1 / 1 is 1 on hardware: an infinite x is multiplied by 1 - sigmoid(x) in a gradient. */
static float reciprocal(float x)
{
    const float y = (float)(1 / (double)flushed(x));
    return flushed(is_limit(y) || x == 1 ? y : moved(y, model.reciprocal_ulps));
}

static float max_nan(float x, float y)
{
    return isnan(x) || isnan(y) ? NAN : x > y ? x : y;
}

#define DEVICE static inline
#include "templates/activation.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MODELS COUNT(models)

/* -- the functions in f64 -------------------------------------------------------------------------------- */

/* A function and its derivative. */
struct pair {
    double f, d;
};

static struct pair none_f64(double x)
{
    return (struct pair){x, 1};
}

static struct pair relu_f64(double x)
{
    return (struct pair){x > 0 ? x : 0, x > 0 ? 1 : 0};
}

static struct pair relu_sq_f64(double x)
{
    return (struct pair){x > 0 ? x * x : 0, x > 0 ? 2 * x : 0};
}

static struct pair sigmoid_f64(double x)
{
    const double s = 1 / (1 + exp(-x)), rest = 1 / (1 + exp(x));
    return (struct pair){s, s * rest};
}

/* x sigmoid(scale x) */
static struct pair swish_f64(double x, double scale)
{
    const struct pair s = sigmoid_f64(scale * x);
    return (struct pair){x * s.f, s.f + scale * (s.d > 0 ? x * s.d : 0)};
}

static struct pair silu_f64(double x)
{
    return swish_f64(x, 1);
}

static struct pair quick_gelu_f64(double x)
{
    return swish_f64(x, 1.702);
}

static struct pair gelu_tanh_f64(double x)
{
    const double root = sqrt(2 / acos(-1)), t = tanh(root * (x + 0.044715 * x * x * x));
    const double slope = fabs(t) == 1 ? 0 : x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
    return (struct pair){0.5 * x * (1 + t), 0.5 * (1 + t) + 0.5 * slope};
}

static struct pair gelu_erf_f64(double x)
{
    const double phi = 0.5 * erfc(-x / sqrt(2)), density = exp(-0.5 * x * x) / sqrt(2 * acos(-1));
    return (struct pair){x * phi, phi + x * density};
}

static struct pair tanh_f64(double x)
{
    const double c = cosh(x);
    return (struct pair){tanh(x), 1 / (c * c)};
}

/* -- the tables ------------------------------------------------------------------------------------------ */

/* Bounds of errors: absolute over max(1, |x|), and relative to what is above 1e-3. Each model stays within
 * them, and one at least comes near: see assert_bounds. relu_sq has its absolute error over max(1, x^2). */
struct bounds {
    double absolute, relative;
};

static const struct {
    const char *name;
    float (*f)(float);
    void (*backward)(float, float, float *, float *);
    struct pair (*reference)(double);
    struct bounds function, gradient;
} singles[] = {
    {"none", none, none_gradient, none_f64, .function = {0, 0}, .gradient = {0, 0}},
    {"relu", relu, relu_gradient, relu_f64, .function = {0, 0}, .gradient = {0, 0}},
    {"relu_sq", relu_sq, relu_sq_gradient, relu_sq_f64, .function = {6e-8, 6e-8}, .gradient = {0, 0}},
    {"gelu_tanh", gelu_tanh, gelu_tanh_gradient, gelu_tanh_f64, .function = {2.5e-7, 1.6e-6},
     .gradient = {7.8e-7, 2.8e-5}},
    {"gelu_erf", gelu_erf, gelu_erf_gradient, gelu_erf_f64, .function = {2.5e-7, 2.2e-4},
     .gradient = {4.1e-7, 1.6e-4}},
    {"silu", silu, silu_gradient, silu_f64, .function = {2.6e-7, 1e-6}, .gradient = {1.9e-7, 2e-5}},
    {"quick_gelu", quick_gelu, quick_gelu_gradient, quick_gelu_f64, .function = {2.5e-7, 1.4e-6},
     .gradient = {2.2e-7, 3.1e-5}},
    {"sigmoid", sigmoid, sigmoid_gradient, sigmoid_f64, .function = {2.2e-7, 9.7e-7},
     .gradient = {7.9e-8, 1.2e-4}},
    {"tanh", hyperbolic_tangent, hyperbolic_tangent_gradient, tanh_f64, .function = {2.9e-7, 8.5e-7},
     .gradient = {2.3e-7, 8.2e-5}},
};

/* f(gate, up) = h(gate) (up + plus) */
static const struct {
    const char *name;
    float (*f)(float, float);
    void (*backward)(float, float, float, float *, float *, float *);
    struct pair (*reference)(double);
    double plus;
    struct bounds function, gate, up; /* of the function and of the gradients */
} doubles[] = {
    {"swiglu", swiglu, swiglu_gradient, silu_f64, 0, .function = {3.1e-7, 1.5e-6}, .gate = {1.7e-7, 3.5e-5},
     .up = {1.8e-7, 1e-6}},
    {"swiglu_oai", swiglu_oai, swiglu_oai_gradient, quick_gelu_f64, 1, .function = {2.7e-7, 1.7e-6},
     .gate = {1.9e-7, 5.6e-5}, .up = {1.9e-7, 1.2e-6}},
    {"geglu", geglu, geglu_gradient, gelu_tanh_f64, 0, .function = {2.9e-7, 2.6e-6}, .gate = {6.4e-7, 2.4e-4},
     .up = {1.9e-7, 1.7e-6}},
    {"reglu", reglu, reglu_gradient, relu_f64, 0, .function = {6e-8, 6e-8}, .gate = {2.9e-8, 7.4e-8},
     .up = {0, 0}},
    {"glu", glu, glu_gradient, sigmoid_f64, 0, .function = {2.5e-7, 1e-6}, .gate = {6.5e-8, 2e-3},
     .up = {1.5e-7, 1e-6}},
};

/* -- the inputs ------------------------------------------------------------------------------------------ */

#define STEPS_PER_ONE 1024
#define SWEEP (2 * 30 * STEPS_PER_ONE + 1) /* [-30, 30] */
#define NUM_INPUTS (SWEEP + 65536)         /* and all bf16 values */

static float input(int index)
{
    if (index < SWEEP)
        return (float)(index - SWEEP / 2) / STEPS_PER_ONE;
    const uint32_t bits = (uint32_t)(index - SWEEP) << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* -- errors ---------------------------------------------------------------------------------------------- */

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Notes the error of y. A reference that no f32 holds asks for infinity. */
static void note(struct bounds *worst, const char *name, float x, float y, double reference, double scale)
{
    if (fabs(reference) > (double)FLT_MAX) {
        if (!isinf(y) || (y > 0) != (reference > 0))
            fail_msg("%s(%a) = %a, f64 has %a", name, (double)x, (double)y, reference);
        return;
    }
    const double error = fabs((double)y - reference);
    if (!isfinite(y))
        fail_msg("%s(%a) = %a, f64 has %a", name, (double)x, (double)y, reference);
    worst->absolute = larger(worst->absolute, error / scale);
    if (fabs(reference) > 1e-3)
        worst->relative = larger(worst->relative, error / fabs(reference));
}

/* The errors are within the bounds, and those are at most three times as wide: a looser one hides what a
 * change loses. */
static void assert_bounds(const char *name, const char *what, struct bounds worst, struct bounds bounds)
{
    if (worst.absolute > bounds.absolute || worst.relative > bounds.relative)
        fail_msg("%s, %s: errors %.3g and %.3g, bounds %.3g and %.3g", name, what, worst.absolute,
                 worst.relative, bounds.absolute, bounds.relative);
    if (3 * worst.absolute < bounds.absolute || 3 * worst.relative < bounds.relative)
        fail_msg("%s, %s: errors %.3g and %.3g, but loose bounds %.3g and %.3g", name, what, worst.absolute,
                 worst.relative, bounds.absolute, bounds.relative);
}

static void functions_are_near_f64(void **state)
{
    (void)state;
    for (size_t s = 0; s < COUNT(singles); s++) {
        const char *const name = singles[s].name;
        const bool is_square = singles[s].f == relu_sq;
        struct bounds worst[2] = {{0, 0}, {0, 0}};
        for (size_t m = 0; m < MODELS; m++) {
            model = models[m];
            for (int i = 0; i < NUM_INPUTS; i++) {
                const float x = input(i), g = -0.75f;
                if (!isfinite(x))
                    continue;
                const struct pair reference = singles[s].reference((double)x);
                const double scale = larger(1, fabs((double)x));
                float dx, y;
                note(&worst[0], name, x, singles[s].f(x), reference.f, is_square ? scale * scale : scale);
                singles[s].backward(x, g, &dx, &y);
                note(&worst[0], name, x, y, reference.f, is_square ? scale * scale : scale);
                note(&worst[1], name, x, dx, (double)g * reference.d, scale);
            }
        }
        assert_bounds(name, "function", worst[0], singles[s].function);
        assert_bounds(name, "gradient", worst[1], singles[s].gradient);
    }
}

static void gated_functions_are_near_f64(void **state)
{
    (void)state;
    static const float ups[] = {0, 1, -1.7109375f, 0.013f, 21.3f};
    for (size_t s = 0; s < COUNT(doubles); s++) {
        const char *const name = doubles[s].name;
        struct bounds worst[3] = {{0, 0}, {0, 0}, {0, 0}};
        for (size_t m = 0; m < MODELS; m++) {
            model = models[m];
            for (int i = 0; i < NUM_INPUTS; i++) {
                const float x = input(i), up = ups[i % (int)COUNT(ups)], g = 0.625f;
                if (!isfinite(x))
                    continue;
                const struct pair h = doubles[s].reference((double)x);
                const double by = (double)up + doubles[s].plus, rows = larger(1, fabs((double)x));
                const double scale = rows * larger(1, fabs(by));
                float dgate, dup, y;
                note(&worst[0], name, x, doubles[s].f(x, up), h.f * by, scale);
                doubles[s].backward(x, up, g, &dgate, &dup, &y);
                note(&worst[0], name, x, y, h.f * by, scale);
                note(&worst[1], name, x, dgate, (double)g * h.d * by, scale);
                note(&worst[2], name, x, dup, (double)g * h.f, rows);
            }
        }
        assert_bounds(name, "function", worst[0], doubles[s].function);
        assert_bounds(name, "gradient of gate", worst[1], doubles[s].gate);
        assert_bounds(name, "gradient of up", worst[2], doubles[s].up);
    }
}

/* The derivatives that the gradients are compared with are those of the functions. */
static void derivatives_are_slopes(void **state)
{
    (void)state;
    static const double step = 1e-5, tolerance = 2e-8;
    for (size_t s = 0; s < COUNT(singles); s++) {
        for (int i = 0; i < SWEEP; i++) {
            const double x = (double)input(i);
            if (x == 0 && (singles[s].f == relu || singles[s].f == relu_sq))
                continue;
            const double slope =
                (singles[s].reference(x + step).f - singles[s].reference(x - step).f) / (2 * step);
            const double derivative = singles[s].reference(x).d;
            if (fabs(slope - derivative) > tolerance * larger(1, fabs(x)))
                fail_msg("%s'(%g) is %.12g, not %.12g", singles[s].name, x, slope, derivative);
        }
    }
}

/* -- special values -------------------------------------------------------------------------------------- */

static void nan_comes_through(void **state)
{
    (void)state;
    float dx, dup, y;
    for (size_t s = 0; s < COUNT(singles); s++) {
        assert_true(isnan(singles[s].f(NAN)));
        assert_true(isnan(singles[s].f(-NAN)));
        singles[s].backward(NAN, 1, &dx, &y);
        assert_true(isnan(y));
        /* these pass the gradient on */
        const bool passes = singles[s].f == none || singles[s].f == relu;
        assert_true(passes ? dx == 1 : isnan(dx));
        singles[s].backward(1, NAN, &dx, &y);
        assert_true(isnan(dx) && y == singles[s].f(1));
    }
    for (size_t s = 0; s < COUNT(doubles); s++) {
        assert_true(isnan(doubles[s].f(NAN, 1)));
        assert_true(isnan(doubles[s].f(1, NAN)));
        assert_true(isnan(doubles[s].f(0, NAN)));
        doubles[s].backward(NAN, 2, 1, &dx, &dup, &y);
        assert_true(isnan(y) && isnan(dup));
        assert_true(doubles[s].f == reglu ? dx == 2 : isnan(dx));
        doubles[s].backward(1, NAN, 1, &dx, &dup, &y);
        assert_true(isnan(y) && isnan(dx) && !isnan(dup));
        doubles[s].backward(1, 1, NAN, &dx, &dup, &y);
        assert_true(isnan(dx) && isnan(dup) && !isnan(y));
    }
}

/* Limits where there are any; -Inf times 0 is NaN. The second value is f(-Inf). */
static void infinities_have_limits(void **state)
{
    (void)state;
    static const struct {
        float (*f)(float);
        float at_plus, at_minus;
    } cases[] = {
        {none, INFINITY, -INFINITY}, {relu, INFINITY, 0},       {relu_sq, INFINITY, 0},
        {gelu_tanh, INFINITY, NAN},  {gelu_erf, INFINITY, NAN}, {silu, INFINITY, NAN},
        {quick_gelu, INFINITY, NAN}, {sigmoid, 1, 0},           {hyperbolic_tangent, 1, -1},
    };
    for (size_t m = 0; m < MODELS; m++) {
        model = models[m];
        for (size_t c = 0; c < COUNT(cases); c++) {
            assert_true(cases[c].f(INFINITY) == cases[c].at_plus);
            const float y = cases[c].f(-INFINITY);
            assert_true(isnan(cases[c].at_minus) ? isnan(y) : y == cases[c].at_minus);
        }
        static float (*const gates[])(float, float) = {swiglu, swiglu_oai, geglu};
        for (size_t i = 0; i < COUNT(gates); i++) {
            assert_true(gates[i](INFINITY, 2) == INFINITY);
            assert_true(isnan(gates[i](-INFINITY, 2)));
            assert_true(isnan(gates[i](0, INFINITY)));
        }
        assert_true(reglu(INFINITY, 2) == INFINITY && reglu(-INFINITY, 2) == 0);
        assert_true(glu(INFINITY, 2) == 2 && glu(-INFINITY, 2) == 0);
    }
}

/* For every finite x they are finite, and go to 0: to the largest that f32 has. */
static void large_negative_values_give_zero(void **state)
{
    (void)state;
    static float (*const functions[])(float) = {gelu_tanh, gelu_erf, silu,   quick_gelu,
                                                sigmoid,   relu,     relu_sq};
    for (size_t m = 0; m < MODELS; m++) {
        model = models[m];
        for (size_t i = 0; i < COUNT(functions); i++)
            for (float x = -100; x > -FLT_MAX / 4; x *= 4)
                assert_true(functions[i](x) == 0);
        for (size_t i = 0; i < COUNT(functions); i++)
            assert_true(functions[i](-FLT_MAX) == 0);
    }
}

static void zeros_of_both_signs_agree(void **state)
{
    (void)state;
    model = models[0];
    for (size_t s = 0; s < COUNT(singles); s++) {
        float positive, negative, y;
        assert_true(singles[s].f(-0.0f) == singles[s].f(0));
        singles[s].backward(0, 1, &positive, &y);
        assert_true(y == singles[s].f(0));
        singles[s].backward(-0.0f, 1, &negative, &y);
        assert_true(y == singles[s].f(0) && positive == negative);
    }
    float dx, dup, y;
    relu_gradient(0, 1, &dx, &y);
    assert_true(dx == 0);
    reglu_gradient(0, 5, 1, &dx, &dup, &y);
    assert_true(dx == 0 && dup == 0 && y == 0);
    for (size_t s = 0; s < COUNT(doubles); s++)
        assert_true(doubles[s].f(-0.0f, 3) == doubles[s].f(0, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_near_f64),    cmocka_unit_test(gated_functions_are_near_f64),
        cmocka_unit_test(derivatives_are_slopes),    cmocka_unit_test(nan_comes_through),
        cmocka_unit_test(infinities_have_limits),    cmocka_unit_test(large_negative_values_give_zero),
        cmocka_unit_test(zeros_of_both_signs_agree),
    };
    return cmocka_run_group_tests_name("activation", tests, NULL, NULL);
}
