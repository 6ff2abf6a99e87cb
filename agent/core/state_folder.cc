#include "agent/core/state_folder.h"

#include <fmt/format.h>

#include <utility>

namespace pipeyard::agent {
namespace {

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

Result<std::string> ReadOrDrawAgentId(Env& env, const AgentPaths& paths, IdSource& ids) {
  const Result<std::string> text = env.ReadFile(paths.AgentId());
  if (text.ok()) {
    std::string id = FirstLine(*text);
    if (IsUuid(id)) return id;
    return DataLoss(
        fmt::format("{} holds no agent id; put it back, or remove it to make this a "
                    "new host",
                    paths.AgentId()));
  }
  if (text.status().code() != StatusCode::kNotFound) return text.status();
  std::string id = ids.Next();
  PIPEYARD_RETURN_IF_ERROR(env.WriteFileAtomic(paths.AgentId(), id + "\n"));
  return id;
}

}  // namespace

Result<std::unique_ptr<StateFolder>> StateFolder::Open(Env& env, const AgentPaths& paths,
                                                       IdSource& ids) {
  const std::string& folder = paths.StateFolder();
  PIPEYARD_RETURN_IF_ERROR(CreateDirsDurably(env, folder));
  Result<std::unique_ptr<FileLock>> lock = env.LockFile(paths.Lock());
  if (lock.status().code() == StatusCode::kFailedPrecondition) {
    return FailedPrecondition(fmt::format(
        "state folder {} is in use by another pipeyard-agent; give each its own --state", folder));
  }
  if (!lock.ok()) return lock.status();
  PIPEYARD_ASSIGN_OR_RETURN(std::string agent_id, ReadOrDrawAgentId(env, paths, ids));
  return std::unique_ptr<StateFolder>(
      new StateFolder(std::move(lock).value(), std::move(agent_id)));
}

Status MarkCleanStop(Env& env, const AgentPaths& paths, const std::string& boot_id) {
  return env.WriteFileAtomic(paths.CleanStop(), boot_id + "\n");
}

Result<std::string> TakeCleanStop(Env& env, const AgentPaths& paths) {
  const Result<std::string> text = env.ReadFile(paths.CleanStop());
  if (text.status().code() == StatusCode::kNotFound) return std::string();
  if (!text.ok()) return text.status();
  PIPEYARD_RETURN_IF_ERROR(env.RemoveFile(paths.CleanStop()));
  PIPEYARD_RETURN_IF_ERROR(env.SyncDir(paths.StateFolder()));
  return FirstLine(*text);
}

}  // namespace pipeyard::agent
