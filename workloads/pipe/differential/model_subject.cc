#include "workloads/pipe/differential/model_subject.h"

#include <unistd.h>

#include "workloads/pipe/differential/ballast.h"
#include "workloads/pipe/differential/privilege.h"

namespace pipeyard::pipe::differential {
namespace {

class ModelSubject : public Subject {
 public:
  explicit ModelSubject(const ModelOptions& options)
      : slots_at_rest_(options.user_slots), system_(options) {}

  PipeSystem& system() override { return system_; }
  Status CheckAtRest() override {
    if (system_.user_slots() == slots_at_rest_) return Status::Ok();
    return Internal("the model's user is still charged");
  }

 private:
  const uint64_t slots_at_rest_;
  ModelSystem system_;
};

}  // namespace

SubjectMaker MakeModelSubject(Fault fault) {
  return [fault](const RunSettings&) -> Result<std::unique_ptr<Subject>> {
    ModelOptions options;
    PIPEYARD_ASSIGN_OR_RETURN(options.limits, KernelPipeLimits());
    options.page_bytes = static_cast<uint32_t>(::sysconf(_SC_PAGESIZE));
    options.capabilities = EffectiveCapabilities();
    options.user_slots =
        uint64_t{CountBallastPipes(options.limits, options.page_bytes)} * kBallastSlots;
    options.fault = fault;
    return std::unique_ptr<Subject>(std::make_unique<ModelSubject>(options));
  };
}

}  // namespace pipeyard::pipe::differential
