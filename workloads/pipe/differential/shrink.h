// Shrinks a program that shows a difference to a small one that shows one too.
//
// Thread safety: pure, as far as `fails` is.
#pragma once

#include <functional>
#include <vector>

#include "workloads/pipe/differential/generator.h"
#include "workloads/pipe/differential/operation.h"

namespace pipeyard::pipe::differential {

// `fails` runs a program from scratch and says whether it still shows a difference. Drops chunks of
// operations, then single ones, then makes the values smaller and rounder, until nothing helps.
// Precondition: fails(operations). Calls `fails` at most `max_runs` times.
// Source: Zeller and Hildebrandt (2002), delta debugging.
std::vector<Operation> Shrink(std::vector<Operation> operations,
                              const std::function<bool(const std::vector<Operation>&)>& fails,
                              int max_runs = 5000);

// Dropping and lowering end where several operations would have to change together. Then a short
// program that fails is sooner met by chance: tries up to `max_tries` of them, where `operations`
// is long.
std::vector<Operation> ShrinkFurther(
    std::vector<Operation> operations,
    const std::function<bool(const std::vector<Operation>&)>& fails,
    const GeneratorOptions& generator, uint64_t seed, int max_tries);

}  // namespace pipeyard::pipe::differential
