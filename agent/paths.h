// Where the agent keeps what, in its state folder (--state DIR).
//
//   DIR/
//     lock                    flock: one agent process uses this folder at a time
//     agent.id                UUIDv7, drawn at the first start: who this host is to every store
//     clean-stop              boot id, written when the agent ended by itself; tells a shutdown of
//     the
//                             host from a crash
//     commands.d/
//       NAME.yaml             made by a person: allows the command NAME (--commands DIR: elsewhere)
//     spool/
//       ATTEMPT.log           the assignment, then the frames of its result, until they are
//       acknowledged
//                             (spool/record_format.h): all that is owed to a controller
//       ATTEMPT.log.bad       a log whose assignment could not be read; for a person to look at
//     attempts/
//       ATTEMPT/              while that attempt is not in the spool to its end
//         started             boot id, written before the worker is spawned: from here on an
//         interrupted
//                             attempt is not begun anew
//         worker              "PID START_TICKS" of the worker, so that a later life of the agent
//         can kill
//                             just this process
//         request.pb          v1.WorkerRequest, read by the worker
//         result.pb           v1.WorkerResult, written by the worker as its last act
//         stdout, stderr      what the worker printed
//         work/               of workload `command`: where the program runs, and what it wrote
//
// Lost with the folder: the host's identity and results that no store has. Everything that must
// survive power loss is under agent.id, spool/ and `started`; the rest is of one boot.
//
// Thread safety: immutable.
#pragma once

#include <string>
#include <utility>

namespace pipeyard::agent {

class AgentPaths {
 public:
  explicit AgentPaths(std::string state_folder) : state_folder_(std::move(state_folder)) {}

  const std::string& StateFolder() const { return state_folder_; }
  std::string Lock() const { return state_folder_ + "/lock"; }
  std::string AgentId() const { return state_folder_ + "/agent.id"; }
  std::string CleanStop() const { return state_folder_ + "/clean-stop"; }
  std::string Spool() const { return state_folder_ + "/spool"; }
  std::string Attempts() const { return state_folder_ + "/attempts"; }
  std::string Commands() const { return state_folder_ + "/commands.d"; }

 private:
  std::string state_folder_;
};

// Of one attempt. `attempt_id` is a UUID: what comes from the wire was checked before it names a
// path.
class AttemptPaths {
 public:
  AttemptPaths(const std::string& attempts_folder, const std::string& attempt_id)
      : folder_(attempts_folder + "/" + attempt_id), attempt_id_(attempt_id) {}

  const std::string& AttemptId() const { return attempt_id_; }
  const std::string& Folder() const { return folder_; }
  std::string Started() const { return folder_ + "/started"; }
  std::string Worker() const { return folder_ + "/worker"; }
  std::string Request() const { return folder_ + "/request.pb"; }
  std::string Result() const { return folder_ + "/result.pb"; }
  std::string Stdout() const { return folder_ + "/stdout"; }
  std::string Stderr() const { return folder_ + "/stderr"; }
  std::string Work() const { return folder_ + "/work"; }

 private:
  std::string folder_;
  std::string attempt_id_;
};

// A trial holds flock on it, so that the agents of one machine alternate. A contract with other
// programs that measure: not to be changed.
inline constexpr char kTrialLockPath[] = "/run/lock/pipeyard-trial";

}  // namespace pipeyard::agent
