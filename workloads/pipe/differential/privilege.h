// What this process may do with pipes, as the kernel judges it, and how to be somebody who may
// less. Capabilities are read, never guessed from the user id: root in a container often lacks
// some.
//
// Thread safety: pure reads; RunAs() from a process with one thread.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "workloads/pipe/pipe_user.h"

namespace pipeyard::pipe::differential {

// Those that count in the initial user namespace, which is where the kernel asks for them.
Capabilities EffectiveCapabilities();
// Of /proc/sys/fs. Errors: kNotFound names the file.
Result<PipeLimits> KernelPipeLimits();

// Whether this process has a user id that RunAs(kUnprivileged) chose, so nobody else's pipes count.
bool HasUserOfItsOwn();

enum class Role {
  kAsIs,  // this process
  // No capabilities, and a user id of its own where this process may choose one: root with
  // CAP_SETUID and CAP_SETGID. Anybody else stays who it is, so its other pipes count, and programs
  // do not come near its soft limit (ballast.h).
  kUnprivileged,
  kWithoutResource,  // as it is, but without CAP_SYS_RESOURCE
};
// Runs `body` in that role, in a child process but for kAsIs; returns what it returned.
// Errors: kFailedPrecondition where the role cannot be taken (the text says which step was refused)
// or the child died.
Result<std::string> RunAs(Role role, const std::function<std::string()>& body);

}  // namespace pipeyard::pipe::differential
