#include "base/env.h"

#include <filesystem>

namespace pipeyard {

Status CreateDirsDurably(Env& env, const std::string& path) {
  PIPEYARD_RETURN_IF_ERROR(env.CreateDirs(path));
  for (auto above = std::filesystem::path(path).parent_path();; above = above.parent_path()) {
    const Status synced = env.SyncDir(above.string());
    if (!synced.ok() && synced.code() != StatusCode::kPermissionDenied) return synced;
    if (!above.has_relative_path()) return Status::Ok();
  }
}

}  // namespace pipeyard
