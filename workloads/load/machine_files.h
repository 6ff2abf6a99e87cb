// MachineFiles: a folder in the place of a machine's root, for tests of what reads /proc and /sys.
//
// Tests only. Thread safety: confined to one thread. Ownership: removes the folder at destruction.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace pipeyard::load {

class MachineFiles : public testing::Test {
 protected:
  MachineFiles() : root_(testing::TempDir() + "/machine." + std::to_string(::getpid())) {}
  ~MachineFiles() override { std::filesystem::remove_all(root_); }

  // Stands before the paths of files.
  const std::string& root() const { return root_; }
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

 private:
  const std::string root_;
};

}  // namespace pipeyard::load
