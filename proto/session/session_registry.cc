#include "proto/session/session_registry.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "proto/session/messages.h"

namespace pipeyard::session {

SessionRegistry::SessionRegistry(Executor& executor, const Clock& clock,
                                 const HostDirectory& directory, RegistryEvents& events,
                                 RegistryOptions options)
    : executor_(executor),
      clock_(clock),
      directory_(directory),
      events_(events),
      options_(std::move(options)) {}

SessionRegistry::~SessionRegistry() { Shutdown(Unavailable("the controller stops")); }

void SessionRegistry::AcceptStream(std::unique_ptr<ControllerStream> stream) {
  if (stopped_.has_value()) {
    stream->Close(*stopped_);
    return;
  }
  ControllerSession::Owner& owner = *this;
  auto session = std::make_shared<ControllerSession>(executor_, clock_, options_.session,
                                                     std::move(stream), owner);
  ControllerSession* const key = session.get();
  sessions_.emplace(key, std::move(session));
  key->Start();
}

void SessionRegistry::OnHello(ControllerSession& session, const v1::Hello& hello) {
  if (const std::optional<Refusal> refusal = Judge(hello); refusal.has_value()) {
    Log(LogLevel::kWarning, "session", "refused agent={} name={}: {}", hello.agent_id(),
        hello.name(), refusal->text);
    session.Refuse(refusal->reason, refusal->text);
    Forget(session);
    return;
  }
  CloseAgent(hello.agent_id(), Aborted("replaced by a newer stream of the same agent"));

  attached_[hello.agent_id()] = &session;
  attached_names_[hello.name()] = hello.agent_id();
  v1::Welcome welcome;
  welcome.set_store_id(options_.store_id);
  welcome.set_epoch(options_.epoch);
  welcome.set_lease_ns(options_.lease.count());
  welcome.set_controller_version(options_.controller_version);
  session.SendWelcome(std::move(welcome));
  Log(LogLevel::kInfo, "session", "attached agent={} name={} held={}", hello.agent_id(),
      hello.name(), hello.held_size());
  events_.OnAgentAttached(hello.agent_id(), hello);
}

std::optional<SessionRegistry::Refusal> SessionRegistry::Judge(const v1::Hello& hello) const {
  if (hello.protocol_version() != kProtocolVersion) {
    return Refusal{v1::HelloRefused::REASON_PROTOCOL_VERSION,
                   fmt::format("the agent speaks protocol version {}, this controller version "
                               "{}: install the same release on both",
                               hello.protocol_version(), kProtocolVersion)};
  }
  if (directory_.IsRetired(hello.agent_id())) {
    return Refusal{v1::HelloRefused::REASON_RETIRED,
                   fmt::format("host {} was retired by an operator", hello.name())};
  }
  const ControllerSession* const live = Find(hello.agent_id());
  if (live != nullptr && live->hello().boot_id() != hello.boot_id()) {
    return Refusal{v1::HelloRefused::REASON_CLONED_ID,
                   fmt::format("agent id {} is attached already, as {} and from another boot: if "
                               "this machine is a copy of that one, empty the agent's state "
                               "folder here",
                               hello.agent_id(), live->hello().name())};
  }
  std::optional<std::string> owner;
  if (const auto it = attached_names_.find(hello.name()); it != attached_names_.end()) {
    owner = it->second;
  }
  if (!owner.has_value() || *owner == hello.agent_id()) {
    owner = directory_.HostIdOfName(hello.name());
  }
  if (owner.has_value() && *owner != hello.agent_id()) {
    return Refusal{v1::HelloRefused::REASON_NAME_IN_USE,
                   fmt::format("the name {} belongs to agent id {}: start this agent with "
                               "another --name",
                               hello.name(), *owner)};
  }
  return std::nullopt;
}

void SessionRegistry::OnAccepted(ControllerSession& session, const v1::Accepted& accepted) {
  events_.OnAccepted(session.hello().agent_id(), accepted);
}

void SessionRegistry::OnRefused(ControllerSession& session, const v1::Refused& refused) {
  events_.OnRefused(session.hello().agent_id(), refused);
}

void SessionRegistry::OnProgress(ControllerSession& session, const v1::Progress& progress) {
  Log(LogLevel::kDebug, "session", "progress name={}: {}", session.hello().name(), progress.text());
}

void SessionRegistry::OnFrame(ControllerSession& session, const v1::Frame& frame) {
  events_.OnFrame(session.hello().agent_id(), frame);
}

void SessionRegistry::OnHeartbeat(ControllerSession& session, const v1::Heartbeat& heartbeat) {
  events_.OnHeartbeat(session.hello().agent_id(), heartbeat);
}

void SessionRegistry::OnSessionClosed(ControllerSession& session, const Status& status) {
  const std::string agent_id = session.hello().agent_id();
  const bool was_attached = Find(agent_id) == &session;
  Log(LogLevel::kInfo, "session", "detached agent={} name={}: {}", agent_id, session.hello().name(),
      status.ToString());
  Forget(session);
  if (was_attached) events_.OnAgentDetached(agent_id, status);
}

bool SessionRegistry::SendAssign(const std::string& agent_id, v1::Assign assign) {
  ControllerSession* const session = Find(agent_id);
  if (session == nullptr) return false;
  assign.set_store_id(options_.store_id);
  assign.set_epoch(options_.epoch);
  session->SendAssign(assign);
  return true;
}

bool SessionRegistry::SendAck(const std::string& agent_id, const std::string& attempt_id,
                              uint64_t through) {
  ControllerSession* const session = Find(agent_id);
  if (session == nullptr) return false;
  session->SendAck(attempt_id, through);
  return true;
}

bool SessionRegistry::SendCancel(const std::string& agent_id, const std::string& attempt_id,
                                 const std::string& reason) {
  ControllerSession* const session = Find(agent_id);
  if (session == nullptr) return false;
  session->SendCancel(attempt_id, reason);
  return true;
}

bool SessionRegistry::CloseAgent(const std::string& agent_id, const Status& why) {
  ControllerSession* const session = Find(agent_id);
  if (session == nullptr) return false;
  session->Close(why);
  OnSessionClosed(*session, why);
  return true;
}

std::vector<std::string> SessionRegistry::AttachedAgents() const {
  std::vector<std::string> agents;
  agents.reserve(attached_.size());
  for (const auto& [agent_id, session] : attached_) agents.push_back(agent_id);
  return agents;
}

void SessionRegistry::Shutdown(const Status& why) {
  if (!stopped_.has_value()) stopped_ = why;
  while (!sessions_.empty()) {
    ControllerSession& session = *sessions_.begin()->second;
    session.Close(why);
    Forget(session);
  }
}

ControllerSession* SessionRegistry::Find(const std::string& agent_id) const {
  const auto it = attached_.find(agent_id);
  return it == attached_.end() ? nullptr : it->second;
}

void SessionRegistry::Forget(ControllerSession& session) {
  const v1::Hello& hello = session.hello();
  if (Find(hello.agent_id()) == &session) {
    attached_.erase(hello.agent_id());
    attached_names_.erase(hello.name());
  }
  const auto it = sessions_.find(&session);
  if (it == sessions_.end()) return;
  executor_.Post([ended = std::move(it->second)] {});
  sessions_.erase(it);
}

}  // namespace pipeyard::session
