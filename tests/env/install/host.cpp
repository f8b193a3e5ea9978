// Doubles eight numbers with an installed smelt; says which version it is.
#include <smelt/smelt.hpp>

#include <cstdio>

int main() try {
    auto twice = smelt::metal_kernel("twice", {"inp"}, {"out"},
                                     "uint i = thread_position_in_grid.x; out[i] = 2 * inp[i];");
    auto y = twice({smelt::arange({8})}, {{8}}, {smelt::float32}, {8, 1, 1}, {8, 1, 1})[0];
    std::printf("smelt %s: %g\n", smelt_version(), y.to_vector<double>()[7]);
} catch (const smelt::error &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
