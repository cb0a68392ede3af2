/* SPDX-License-Identifier: Apache-2.0 */
/* The ratios over the shapes as an SVG: a dot for the chosen config with its quartiles, a tick for cuBLASLt's
 * best algorithm. Ratios are on a logarithmic axis, so that 2 and 1/2 are equally far from 1. */
#include <math.h>

#include "bench.h"

enum { LEFT = 60, TOP = 30, STEP = 18, HEIGHT = 360, BOTTOM = 150, RIGHT = 20 };

struct axis {
    double low, high; /* ratios */
};

static double y_of(const struct axis *axis, double ratio)
{
    return TOP + HEIGHT * (log(axis->high / ratio) / log(axis->high / axis->low));
}

static void widen(struct axis *axis, double ratio)
{
    axis->low = ratio < axis->low ? ratio : axis->low;
    axis->high = ratio > axis->high ? ratio : axis->high;
}

static struct axis find_axis(const struct bench_summary *summaries, size_t count)
{
    struct axis axis = {0.95, 1.05};
    for (size_t i = 0; i < count; i++) {
        if (!summaries[i].right)
            continue;
        widen(&axis, summaries[i].chosen_low);
        widen(&axis, summaries[i].chosen_high);
        if (summaries[i].reference_ratio > 0)
            widen(&axis, summaries[i].reference_ratio);
    }
    return (struct axis){axis.low * 0.98, axis.high * 1.02};
}

static void add_grid(const struct axis *axis, int width, struct gj_strbuf *out)
{
    for (int percent = 5 * (int)ceil(axis->low * 20); percent <= 100 * axis->high; percent += 5) {
        const double y = y_of(axis, percent / 100.0);
        gj_strbuf_printf(out, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", LEFT,
                         width - RIGHT, y, y, percent == 100 ? "#000" : "#ddd");
        gj_strbuf_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.2f</text>\n", LEFT - 6, y + 4,
                         percent / 100.0);
    }
}

static void add_shape(const struct axis *axis, const struct bench_summary *summary, int x,
                      struct gj_strbuf *out)
{
    const struct bench_shape *const shape = &summary->shape;
    gj_strbuf_printf(
        out, "<text transform=\"translate(%d %d) rotate(-90)\" text-anchor=\"end\">%lldx%lldx%lld</text>\n",
        x + 4, TOP + HEIGHT + 8, (long long)shape->m, (long long)shape->n, (long long)shape->k);
    if (!summary->right) {
        gj_strbuf_printf(out, "<text x=\"%d\" y=\"%d\" fill=\"#c00\">wrong</text>\n", x - 8, TOP + 12);
        return;
    }
    gj_strbuf_printf(out, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#06c\"/>\n", x, x,
                     y_of(axis, summary->chosen_low), y_of(axis, summary->chosen_high));
    gj_strbuf_printf(out, "<circle cx=\"%d\" cy=\"%.1f\" r=\"4\" fill=\"#06c\"/>\n", x,
                     y_of(axis, summary->chosen_ratio));
    if (summary->reference_ratio > 0)
        gj_strbuf_printf(
            out, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#c60\" stroke-width=\"2\"/>\n",
            x - 6, x + 6, y_of(axis, summary->reference_ratio), y_of(axis, summary->reference_ratio));
}

void bench_plot(const struct bench *bench, const struct bench_summary *summaries, size_t count,
                struct gj_strbuf *out)
{
    const struct axis axis = find_axis(summaries, count);
    const int width = LEFT + RIGHT + STEP * (int)count + STEP, height = TOP + HEIGHT + BOTTOM;
    gj_strbuf_printf(out,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                     "font-family=\"sans-serif\" font-size=\"11\">\n"
                     "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                     width, height);
    gj_strbuf_printf(
        out, "<text x=\"%d\" y=\"18\">%s: time of %s / time of gemmjit; dot: chosen config%s</text>\n", LEFT,
        bench->gpu.name, bench->vs_cublas ? "cuBLASLt" : "the chosen config",
        bench->vs_cublas ? "; tick: cuBLASLt's best of 8" : "");
    add_grid(&axis, width, out);
    for (size_t i = 0; i < count; i++)
        add_shape(&axis, &summaries[i], LEFT + STEP * (int)i + STEP, out);
    gj_strbuf_puts(out, "</svg>\n");
}
