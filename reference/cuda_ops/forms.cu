/* forms.cu: the ops of define/forms.h. */
#include "cuda_ops/elementwise.cuh"

#define ELEMENTWISE FORM
#include "define/forms.h"

typedef void launcher(const struct kp_call *c, void *, void *, cudaStream_t stream);

/* gelu: one of two forms, as the attribute says. */
static void choose_gelu(const struct kp_call *c, launcher *by_tanh, launcher *by_erf,
                        cudaStream_t stream) {
    bool tanh_wanted = !strcmp(op_word(c->op, "approximate", "none"), "tanh");
    (tanh_wanted ? by_tanh : by_erf)(c, NULL, NULL, stream);
}
static void run_gelu(const struct kp_call *c, void *, void *, cudaStream_t stream) {
    choose_gelu(c, run<form_gelu_tanh>, run<form_gelu_erf>, stream);
}
static void rough_gelu(const struct kp_call *c, void *, void *, cudaStream_t stream) {
    choose_gelu(c, rough<form_gelu_tanh>, rough<form_gelu_erf>, stream);
}

/* pow: small powers are products or roots, as in PyTorch. */
static void choose_pow(const struct kp_call *c, launcher *const by[5], cudaStream_t stream) {
    double y = c->present[1] ? NAN : c->op->in[1].scalar;
    by[y == 2 ? 0 : y == 3 ? 1 : y == 0.5 ? 2 : y == -0.5 ? 3 : 4](c, NULL, NULL, stream);
}
static void run_pow(const struct kp_call *c, void *, void *, cudaStream_t stream) {
    static launcher *const by[] = {run<form_square>, run<form_cube>, run<form_sqrt>,
                                   run<form_rsqrt>, run<form_power>};
    choose_pow(c, by, stream);
}
static void rough_pow(const struct kp_call *c, void *, void *, cudaStream_t stream) {
    static launcher *const by[] = {rough<form_square>, rough<form_cube>, rough<form_sqrt>,
                                   rough<form_rsqrt>, rough<form_power>};
    choose_pow(c, by, stream);
}

KP_IMPL(gelu, prepare, run_gelu, rough_gelu, NULL, KP_ONE_TYPE | KP_IN_PLACE);
KP_IMPL(pow, prepare, run_pow, rough_pow, NULL, KP_ONE_TYPE | KP_IN_PLACE);
#undef FORM
#define FORM(name, operands, numbers, expression)
#define ELEMENTWISE ELEMENTWISE_IMPL
#include "define/forms.h"
