/* doubled.cuh against plain double. */
#include "doubled.cuh"
#include "include_test.cuh"

/* Stores every result: out[image][filter][z][y][x]. */
template <class D> struct StoreAll {
    static constexpr int BLOCKS = 1, VOLUME = D::OUT_Z * D::OUT_Y * D::OUT_X;
    struct State {
        int filter;
    };
    float *out;

    __device__ void begin(State &s) const { s.filter = 0; }
    __device__ void take(State &s, const typename D::Place &at, int part,
                         const float (&v)[D::WINDOWS][4]) const {
        for (int i = 0; i < D::WINDOWS; i++)
            for (int f = 0; f < 4; f++)
                if (at.has(i, part))
                    out[(at.image * D::FILTERS + s.filter + f) * VOLUME + at.result(i, part)] =
                        v[i][f];
    }
    __device__ void next(State &s, const typename D::Place &, int filter) const {
        s.filter = filter + 4;
    }
    __device__ void end(State &, const typename D::Place &) const {}
};

/* Stores the first result of every whole window: out[image][filter][window]. */
template <class D> struct StoreWhole {
    static constexpr int BLOCKS = 1, VOLUME = D::WHOLE_Z * D::WHOLE_Y * D::WHOLE_X;
    struct State {
        float first[D::WINDOWS][4];
    };
    float *out;

    __device__ void begin(State &) const {}
    __device__ void take(State &s, const typename D::Place &, int part,
                         const float (&v)[D::WINDOWS][4]) const {
        if (part == 0) memcpy(s.first, v, sizeof s.first);
    }
    __device__ void next(State &s, const typename D::Place &at, int filter) const {
        for (int i = 0; i < D::WINDOWS; i++)
            for (int f = 0; f < 4; f++)
                if (at.whole(i))
                    out[(at.image * D::FILTERS + filter + f) * VOLUME + at.window(i)] =
                        s.first[i][f];
    }
    __device__ void end(State &, const typename D::Place &) const {}
};

/* Result (z, y, x) of a filter and an image. */
template <class D>
static Want result(const std::vector<float> &x, const std::vector<float> &w, float bias, int image,
                   int filter, const int (&o)[3]) {
    constexpr int SIZE[3] = {D::Z, D::Y, D::X};
    double sum = bias, size = std::fabs(bias);
    for (int c = 0; c < D::CHANNELS; c++)
        for (int tap = 0; tap < 27; tap++) {
            const int k[3] = {tap / 9, tap / 3 % 3, tap % 3};
            size_t at = (size_t)image * D::CHANNELS + c;
            bool inside = true;
            for (int a = 0; a < 3; a++) { /* o = 2 i - 1 + k */
                const int twice = o[a] + 1 - k[a];
                inside = inside && twice >= 0 && twice % 2 == 0 && twice / 2 < SIZE[a];
                at = at * SIZE[a] + twice / 2;
            }
            if (!inside) continue;
            const double t = (double)x[at] * w[((size_t)c * D::FILTERS + filter) * 27 + tap];
            sum += t, size += std::fabs(t);
        }
    return {sum, size * (8 * D::CHANNELS + 1) * U};
}

template <class D> static void test(int images) {
    begin("%d images of %d x %d x %d x %d to %d x %d x %d x %d", images, D::CHANNELS, D::Z, D::Y,
          D::X, D::FILTERS, D::OUT_Z, D::OUT_Y, D::OUT_X);
    const std::vector<float> input = uniform((size_t)images * D::CHANNELS * D::Z * D::Y * D::X, 1);
    const std::vector<float> filters = uniform((size_t)D::CHANNELS * D::FILTERS * 27, 2);
    const std::vector<float> add = uniform(D::FILTERS, 3);
    const int planes = images * D::FILTERS;
    const Buffer<float> x(input), w(filters), b(add), all((size_t)planes * StoreAll<D>::VOLUME),
        whole((size_t)planes * StoreWhole<D>::VOLUME);
    kp::doubled<D>(x.data, w.data, b.data, images, StoreAll<D>{all.data}, 0);
    kp::doubled<D>(x.data, w.data, b.data, images, StoreWhole<D>{whole.data}, 0);
    ran();
    std::vector<Want> want, first;
    for (int p = 0; p < planes; p++)
        for (int i = 0; i < StoreAll<D>::VOLUME; i++) {
            const int o[3] = {i / (D::OUT_Y * D::OUT_X), i / D::OUT_X % D::OUT_Y, i % D::OUT_X};
            const int f = p % D::FILTERS;
            want.push_back(result<D>(input, filters, add[f], p / D::FILTERS, f, o));
            const bool even = o[0] % 2 + o[1] % 2 + o[2] % 2 == 0;
            if (even && o[0] / 2 < D::WHOLE_Z && o[1] / 2 < D::WHOLE_Y && o[2] / 2 < D::WHOLE_X)
                first.push_back(want.back());
        }
    compare(all, want);
    compare(whole, first, "whole windows");
    unchanged(x, input, "x");
}

int main() {
    start(false);
    test<kp::Doubled<3, 16, 4, 16, 32, false>>(2);
    test<kp::Doubled<3, 16, 4, 16, 32, true>>(2);
    test<kp::Doubled<1, 4, 1, 4, 128, false>>(3);
    test<kp::Doubled<2, 8, 3, 8, 64, true>>(1);
    test<kp::Doubled<7, 8, 2, 16, 32, false>>(2);
    finish();
}
