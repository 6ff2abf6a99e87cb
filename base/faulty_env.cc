#include "base/faulty_env.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace pipeyard {
namespace {

std::string Parent(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

bool IsBelow(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

}  // namespace

class FaultyEnv::File final : public WritableFile {
 public:
  File(FaultyEnv& env, std::string path, std::shared_ptr<Node> node)
      : env_(env), path_(std::move(path)), node_(std::move(node)), boot_(env.boot_) {}

  Status Append(std::string_view data) override {
    if (const Status step = Step("write"); !step.ok()) {
      if (boot_ == env_.boot_) node_->current.append(data.substr(0, data.size() / 2));
      return step;
    }
    node_->current.append(data);
    return Status::Ok();
  }

  Status Sync() override {
    if (const Status step = Step("fdatasync"); !step.ok()) {
      if (boot_ == env_.boot_) {
        node_->doomed_begin = std::min(node_->durable.size(), node_->current.size());
        node_->doomed_end = node_->current.size();
      }
      return step;
    }
    node_->durable = node_->current;
    for (size_t i = node_->doomed_begin; i < node_->doomed_end; ++i) node_->durable[i] = '\0';
    return Status::Ok();
  }

  Status Close() override { return Step("close"); }

 private:
  Status Step(std::string_view operation) {
    if (boot_ != env_.boot_) return ErrnoStatus(fmt::format("{} {}", operation, path_), EBADF);
    return env_.Step(operation, path_);
  }

  FaultyEnv& env_;
  const std::string path_;
  const std::shared_ptr<Node> node_;
  const uint64_t boot_;
};

class FaultyEnv::Lock final : public FileLock {
 public:
  explicit Lock(std::shared_ptr<Node> node) : node_(std::move(node)) {}
  ~Lock() override { node_->is_locked = false; }

 private:
  const std::shared_ptr<Node> node_;
};

void FaultyEnv::Inject(Fault fault, int step) {
  fault_ = fault;
  steps_left_ = step;
  was_hit_ = false;
}

void FaultyEnv::Reboot(Survives what) {
  fault_.reset();
  has_power_ = true;
  ++boot_;
  if (what == Survives::kSynced) names_ = durable_names_;
  Names fresh;
  for (const auto& [path, node] : names_) {
    auto found = std::make_shared<Node>();
    found->is_dir = node->is_dir;
    if (what == Survives::kEverything) found->current = node->current;
    if (what == Survives::kSynced) found->current = node->durable;
    if (what == Survives::kHalf) {
      found->current = node->durable;
      if (node->current.size() > node->durable.size()) {
        const size_t unsynced = node->current.size() - node->durable.size();
        found->current.append(node->current, node->durable.size(), (unsynced + 1) / 2);
      }
    }
    found->durable = found->current;
    fresh.emplace(path, std::move(found));
  }
  // A name below a folder that is itself gone cannot be reached.
  std::erase_if(fresh, [&](const auto& entry) {
    for (std::string folder = Parent(entry.first); folder.size() > 1; folder = Parent(folder)) {
      if (!fresh.contains(folder)) return true;
    }
    return false;
  });
  names_ = fresh;
  durable_names_ = fresh;
}

Status FaultyEnv::Step(std::string_view operation, const std::string& path) {
  const std::string what = fmt::format("{} {}", operation, path);
  if (!has_power_) return Unavailable(what + ": the machine has no power");
  if (!fault_ || steps_left_-- > 0) return Status::Ok();
  has_power_ = *fault_ == Fault::kFail;
  fault_.reset();
  was_hit_ = true;
  return ErrnoStatus(what, EIO);
}

std::shared_ptr<FaultyEnv::Node> FaultyEnv::Find(const std::string& path) const {
  const auto it = names_.find(path);
  return it == names_.end() ? nullptr : it->second;
}

Result<std::string> FaultyEnv::ReadFile(const std::string& path) {
  PIPEYARD_RETURN_IF_ERROR(Step("read", path));
  const std::shared_ptr<Node> node = Find(path);
  if (node == nullptr) return ErrnoStatus(fmt::format("open {}", path), ENOENT);
  if (node->is_dir) return ErrnoStatus(fmt::format("read {}", path), EISDIR);
  return node->current;
}

Result<std::unique_ptr<WritableFile>> FaultyEnv::OpenAppend(const std::string& path) {
  PIPEYARD_RETURN_IF_ERROR(Step("open", path));
  std::shared_ptr<Node> node = Find(path);
  if (node == nullptr) {
    const std::shared_ptr<Node> folder = Find(Parent(path));
    if (folder == nullptr) return ErrnoStatus(fmt::format("open {}", path), ENOENT);
    node = std::make_shared<Node>();
    names_[path] = node;
  }
  if (node->is_dir) return ErrnoStatus(fmt::format("open {}", path), EISDIR);
  return std::unique_ptr<WritableFile>(std::make_unique<File>(*this, path, node));
}

Status FaultyEnv::WriteFileAtomic(const std::string& path, std::string_view data) {
  const std::string temporary = path + ".tmp";
  {
    PIPEYARD_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, OpenAppend(temporary));
    const std::shared_ptr<Node> node = Find(temporary);
    node->current.clear();
    node->doomed_begin = 0;
    node->doomed_end = 0;
    PIPEYARD_RETURN_IF_ERROR(file->Append(data));
    PIPEYARD_RETURN_IF_ERROR(file->Sync());
  }
  PIPEYARD_RETURN_IF_ERROR(Rename(temporary, path));
  return SyncDir(Parent(path));
}

Status FaultyEnv::Truncate(const std::string& path, uint64_t size_bytes) {
  PIPEYARD_RETURN_IF_ERROR(Step("truncate", path));
  const std::shared_ptr<Node> node = Find(path);
  if (node == nullptr) return ErrnoStatus(fmt::format("truncate {}", path), ENOENT);
  node->current.resize(size_bytes);
  node->doomed_end = std::min(node->doomed_end, static_cast<size_t>(size_bytes));
  node->doomed_begin = std::min(node->doomed_begin, node->doomed_end);
  return Status::Ok();
}

Result<uint64_t> FaultyEnv::FileSize(const std::string& path) {
  PIPEYARD_RETURN_IF_ERROR(Step("stat", path));
  const std::shared_ptr<Node> node = Find(path);
  if (node == nullptr) return ErrnoStatus(fmt::format("stat {}", path), ENOENT);
  return static_cast<uint64_t>(node->current.size());
}

bool FaultyEnv::Exists(const std::string& path) { return has_power_ && Find(path) != nullptr; }

Status FaultyEnv::CreateDirs(const std::string& path) {
  PIPEYARD_RETURN_IF_ERROR(Step("mkdir", path));
  std::vector<std::string> missing;
  for (std::string folder = path; folder.size() > 1; folder = Parent(folder)) {
    const std::shared_ptr<Node> node = Find(folder);
    if (node == nullptr) missing.push_back(folder);
    if (node != nullptr && !node->is_dir)
      return ErrnoStatus(fmt::format("mkdir {}", path), ENOTDIR);
  }
  for (const std::string& folder : missing) {
    auto node = std::make_shared<Node>();
    node->is_dir = true;
    names_[folder] = node;
  }
  return Status::Ok();
}

Result<std::vector<std::string>> FaultyEnv::ListDir(const std::string& path) {
  PIPEYARD_RETURN_IF_ERROR(Step("list", path));
  const std::shared_ptr<Node> folder = Find(path);
  if (folder == nullptr) return ErrnoStatus(fmt::format("list {}", path), ENOENT);
  std::vector<std::string> children;
  for (const auto& [name, node] : names_) {
    if (IsBelow(name, path) && Parent(name) == path)
      children.push_back(name.substr(path.size() + 1));
  }
  return children;
}

Status FaultyEnv::RemoveFile(const std::string& path) {
  PIPEYARD_RETURN_IF_ERROR(Step("unlink", path));
  if (names_.erase(path) == 0) return ErrnoStatus(fmt::format("unlink {}", path), ENOENT);
  return Status::Ok();
}

Status FaultyEnv::RemoveTree(const std::string& path) {
  PIPEYARD_RETURN_IF_ERROR(Step("remove", path));
  std::erase_if(
      names_, [&](const auto& entry) { return entry.first == path || IsBelow(entry.first, path); });
  return Status::Ok();
}

Status FaultyEnv::Rename(const std::string& from, const std::string& to) {
  PIPEYARD_RETURN_IF_ERROR(Step("rename", from));
  const std::shared_ptr<Node> node = Find(from);
  if (node == nullptr) return ErrnoStatus(fmt::format("rename {} to {}", from, to), ENOENT);
  names_.erase(from);
  names_[to] = node;
  return Status::Ok();
}

Status FaultyEnv::SyncDir(const std::string& path) {
  PIPEYARD_RETURN_IF_ERROR(Step("fsync", path));
  if (Find(path) == nullptr && path.size() > 1)
    return ErrnoStatus(fmt::format("open {}", path), ENOENT);
  std::erase_if(durable_names_, [&](const auto& entry) {
    return Parent(entry.first) == path && !names_.contains(entry.first);
  });
  for (const auto& [name, node] : names_) {
    if (Parent(name) == path) durable_names_[name] = node;
  }
  return Status::Ok();
}

Result<uint64_t> FaultyEnv::FreeBytes(const std::string& path) {
  PIPEYARD_RETURN_IF_ERROR(Step("statvfs", path));
  return free_bytes_;
}

Result<std::unique_ptr<FileLock>> FaultyEnv::LockFile(const std::string& path) {
  PIPEYARD_RETURN_IF_ERROR(Step("lock", path));
  std::shared_ptr<Node> node = Find(path);
  if (node == nullptr) {
    node = std::make_shared<Node>();
    names_[path] = node;
  }
  if (node->is_locked)
    return FailedPrecondition(fmt::format("lock {}: another process holds it", path));
  node->is_locked = true;
  return std::unique_ptr<FileLock>(std::make_unique<Lock>(node));
}

}  // namespace pipeyard
