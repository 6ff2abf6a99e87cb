// The state folder as a whole: whose it is and that one agent uses it at a time.
//
// Thread safety: thread-compatible.
#pragma once

#include <memory>
#include <string>

#include "agent/paths.h"
#include "base/env.h"
#include "base/ids.h"
#include "base/status.h"

namespace pipeyard::agent {

// Keeps the lock until destruction.
class StateFolder {
 public:
  // Creates the folder where it is missing, takes its lock, and reads the agent id; draws one at
  // the first start. Errors: kFailedPrecondition (another agent uses it), kDataLoss (agent.id holds
  // no UUID: it is not overwritten, for the id is what stores know this host by), or the Env's.
  static Result<std::unique_ptr<StateFolder>> Open(Env& env, const AgentPaths& paths,
                                                   IdSource& ids);

  const std::string& agent_id() const { return agent_id_; }

 private:
  StateFolder(std::unique_ptr<FileLock> lock, std::string agent_id)
      : lock_(std::move(lock)), agent_id_(std::move(agent_id)) {}

  const std::unique_ptr<FileLock> lock_;
  const std::string agent_id_;
};

// Tells the next start that this one ended by itself in boot `boot_id`.
Status MarkCleanStop(Env& env, const AgentPaths& paths, const std::string& boot_id);
// Takes the mark back, durably, and returns its boot id; empty where there is none.
Result<std::string> TakeCleanStop(Env& env, const AgentPaths& paths);

}  // namespace pipeyard::agent
