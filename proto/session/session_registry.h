// SessionRegistry: every stream of the controller, and the one live session of each agent. Decides
// who may attach; the first line that applies counts:
//
//   other protocol version                      refused, naming both versions
//   host retired                                refused
//   same agent id lives with another boot id    refused: a cloned image
//   same agent id lives with the same boot id   the new session takes the place of the old one
//   name in use by another id, live or stored   refused
//   else                                        Welcome, at once: waits for no database write
//
// "A cloned image" may also be the host's own session from before a reboot: that one falls silent
// and ends within three heartbeat intervals, and the agent dials again until then.
// Agents are named by agent id here; an agent id is the store's host_id.
//
// Thread safety: confined to the executor given. Ownership: everything given by reference is
// borrowed and outlives this.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/status.h"
#include "pipeyard/v1/agent.pb.h"
#include "proto/session/controller_session.h"
#include "proto/session/transport.h"

namespace pipeyard::session {

// The hosts that the store knows. The controller keeps them in memory and adds a host when it
// attaches, before it is committed.
class HostDirectory {
 public:
  virtual ~HostDirectory() = default;
  virtual std::optional<std::string> HostIdOfName(const std::string& name) const = 0;
  virtual bool IsRetired(const std::string& host_id) const = 0;
};

// What happens with the agents. Calls into the registry are allowed from inside, destroying it is
// not.
class RegistryEvents {
 public:
  virtual ~RegistryEvents() = default;
  // Welcome is sent. The receiver stores the host, and assigns again every attempt it has leased to
  // this host that hello.held() does not list.
  virtual void OnAgentAttached(const std::string& agent_id, const v1::Hello& hello) = 0;
  // Also (kAborted) before OnAgentAttached() when a session is replaced. Says nothing about the
  // host's attempts.
  virtual void OnAgentDetached(const std::string& agent_id, const Status& why) = 0;
  virtual void OnAccepted(const std::string& agent_id, const v1::Accepted& accepted) = 0;
  virtual void OnRefused(const std::string& agent_id, const v1::Refused& refused) = 0;
  // Commit it, then SendAck(). Valid in form; its store id is this store's. A frame whose sequence
  // leaves a gap to what is committed or about to be is answered with CloseAgent(kInvalidArgument).
  virtual void OnFrame(const std::string& agent_id, const v1::Frame& frame) = 0;
  virtual void OnHeartbeat(const std::string& agent_id, const v1::Heartbeat& heartbeat) = 0;
};

struct RegistryOptions {
  ControllerSessionOptions session;
  std::string store_id;
  uint64_t epoch = 0;
  // How long the scheduler keeps an attempt for a host that is away. Said in Welcome, enforced by
  // the scheduler.
  Nanos lease = Minutes(10);
  std::string controller_version;
};

class SessionRegistry final : public StreamAcceptor, private ControllerSession::Owner {
 public:
  SessionRegistry(Executor& executor, const Clock& clock, const HostDirectory& directory,
                  RegistryEvents& events, RegistryOptions options);
  ~SessionRegistry() override;
  SessionRegistry(const SessionRegistry&) = delete;
  SessionRegistry& operator=(const SessionRegistry&) = delete;

  void AcceptStream(std::unique_ptr<ControllerStream> stream) override;

  bool IsAttached(const std::string& agent_id) const { return attached_.contains(agent_id); }
  std::vector<std::string> AttachedAgents() const;
  size_t num_streams() const { return sessions_.size(); }

  // Each returns false where the agent is not attached: nothing was sent, and nothing needs to be
  // repeated but Assign after its next Hello. Store id and epoch of the Assign are filled in.
  bool SendAssign(const std::string& agent_id, v1::Assign assign);
  bool SendAck(const std::string& agent_id, const std::string& attempt_id, uint64_t through);
  bool SendCancel(const std::string& agent_id, const std::string& attempt_id,
                  const std::string& reason);
  // OnAgentDetached() follows, from inside this call.
  bool CloseAgent(const std::string& agent_id, const Status& why);

  // Closes every stream and refuses later ones with `why`. No event comes after it.
  void Shutdown(const Status& why);

 private:
  void OnHello(ControllerSession& session, const v1::Hello& hello) override;
  void OnAccepted(ControllerSession& session, const v1::Accepted& accepted) override;
  void OnRefused(ControllerSession& session, const v1::Refused& refused) override;
  void OnProgress(ControllerSession& session, const v1::Progress& progress) override;
  void OnFrame(ControllerSession& session, const v1::Frame& frame) override;
  void OnHeartbeat(ControllerSession& session, const v1::Heartbeat& heartbeat) override;
  void OnSessionClosed(ControllerSession& session, const Status& status) override;

  // Why this Hello may not attach; nullopt where it may.
  struct Refusal {
    v1::HelloRefused::Reason reason;
    std::string text;
  };
  std::optional<Refusal> Judge(const v1::Hello& hello) const;
  ControllerSession* Find(const std::string& agent_id) const;
  // Takes the session out of the books. It is destroyed later, on the executor: it may be on the
  // stack.
  void Forget(ControllerSession& session);

  // Constant after construction.
  Executor& executor_;
  const Clock& clock_;
  const HostDirectory& directory_;
  RegistryEvents& events_;
  const RegistryOptions options_;

  // shared_ptr because a session that ends is handed to a task, and tasks are copyable.
  std::map<ControllerSession*, std::shared_ptr<ControllerSession>> sessions_;
  std::map<std::string, ControllerSession*> attached_;  // by agent id
  std::map<std::string, std::string> attached_names_;   // name -> agent id
  std::optional<Status> stopped_;
};

}  // namespace pipeyard::session
