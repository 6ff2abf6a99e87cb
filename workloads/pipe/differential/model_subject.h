// The model as a subject, with the limits and capabilities of this process.
//
// Thread safety: as ModelSystem.
#pragma once

#include "workloads/pipe/differential/comparison.h"
#include "workloads/pipe/differential/model_system.h"

namespace pipeyard::pipe::differential {

SubjectMaker MakeModelSubject(Fault fault);

}  // namespace pipeyard::pipe::differential
