// A kernel from C++: y = exp(x) for an array of half-precision numbers, by a Metal kernel on this CPU.
//
//     custom_kernel        exits with 0 when the result is right
#include <smelt/smelt.hpp>

#include <cmath>
#include <cstdio>

using namespace smelt;

int main() try {
    // A kernel is the body of a Metal function. Its signature is made from these names and from the arrays of
    // a call.
    auto exp_kernel = metal_kernel("myexp", {"inp"}, {"out"}, R"(
        uint elem = thread_position_in_grid.x;
        T tmp = inp[elem];
        out[elem] = metal::exp(tmp);
    )");

    // 4 x 16 normal random numbers, one thread each. The grid counts threads, not threadgroups.
    array x = random::normal({4, 16}, float16);
    std::int64_t threads = static_cast<std::int64_t>(x.size());
    array y = exp_kernel({x}, {x.shape()}, {x.dtype()}, {threads, 1, 1}, {256, 1, 1}, {{"T", x.dtype()}})[0];

    float worst = 0;
    std::vector<float> from = x.to_vector<float>(), to = y.to_vector<float>();
    for (std::size_t i = 0; i < from.size(); i++)
        worst = std::fmax(worst, std::fabs(to[i] / std::exp(from[i]) - 1));
    std::printf("exp(%g) = %g; worst relative error %.1e\n", from[0], to[0], worst);
    return worst < 1e-3f ? 0 : 1;
} catch (const error &e) {
    std::fprintf(stderr, "%s: %s\n", smelt_status_name(e.status()), e.what());
    return 1;
}
