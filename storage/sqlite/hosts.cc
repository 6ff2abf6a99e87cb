#include "storage/sqlite/hosts.h"

#include <fmt/format.h>

#include <unordered_map>

#include "storage/sqlite/facts.h"

namespace pipeyard::storage {
namespace {

// Row of the host; 0 where there is none.
Result<int64_t> LookUpHost(Connection& connection, const std::string& host_id) {
  Query query(connection, "SELECT host FROM hosts WHERE host_id = ?1", host_id);
  if (query.Next()) return query.Int(0);
  PIPEYARD_RETURN_IF_ERROR(query.status());
  return int64_t{0};
}

Status CheckNameIsFree(Connection& connection, const HostRecord& host) {
  Query query(connection, "SELECT host_id FROM hosts WHERE name = ?1 AND host_id <> ?2", host.name,
              host.host_id);
  if (query.Next()) {
    return AlreadyExists(fmt::format("host name {} is that of host {}", host.name, query.Text(0)));
  }
  return query.status();
}

Result<int64_t> InsertHost(Connection& connection, const HostRecord& host, int64_t facts) {
  PIPEYARD_RETURN_IF_ERROR(
      RunSql(connection,
             "INSERT INTO hosts (host_id, name, boot_id, agent_version, facts, first_seen_utc, "
             "last_seen_utc) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
             host.host_id, host.name, host.boot_id, host.agent_version, facts, host.first_seen_utc,
             host.last_seen_utc));
  const int64_t row = connection.last_insert_rowid();
  for (const auto& [name, value] : host.labels) {
    PIPEYARD_RETURN_IF_ERROR(
        RunSql(connection, "INSERT INTO host_labels (host, name, value) VALUES (?1, ?2, ?3)", row,
               name, value));
  }
  return row;
}

Status UpdateHost(Connection& connection, int64_t row, const HostRecord& host, int64_t facts) {
  return RunSql(connection,
                "UPDATE hosts SET name = ?2, boot_id = ?3, agent_version = ?4, facts = ?5, "
                "last_seen_utc = max(last_seen_utc, ?6) WHERE host = ?1",
                row, host.name, host.boot_id, host.agent_version, facts, host.last_seen_utc);
}

// One row for each change of the host's facts.
Status NoteFacts(Connection& connection, int64_t host, int64_t facts, int64_t since_utc) {
  Query latest(connection,
               "SELECT facts FROM host_facts WHERE host = ?1 ORDER BY host_facts DESC LIMIT 1",
               host);
  const bool is_known = latest.Next() && latest.Int(0) == facts;
  PIPEYARD_RETURN_IF_ERROR(latest.status());
  if (is_known) return Status::Ok();
  return RunSql(connection, "INSERT INTO host_facts (host, facts, since_utc) VALUES (?1, ?2, ?3)",
                host, facts, since_utc);
}

Status ReplaceCapabilities(Connection& connection, int64_t host,
                           const std::vector<std::string>& capabilities) {
  PIPEYARD_RETURN_IF_ERROR(
      RunSql(connection, "DELETE FROM host_capabilities WHERE host = ?1", host));
  for (const std::string& capability : capabilities) {
    PIPEYARD_RETURN_IF_ERROR(RunSql(
        connection, "INSERT OR IGNORE INTO host_capabilities (host, capability) VALUES (?1, ?2)",
        host, capability));
  }
  return Status::Ok();
}

}  // namespace

Status Write(Connection& connection, const UpsertHost& mutation) {
  const HostRecord& host = mutation.host;
  if (host.host_id.empty() || host.name.empty()) {
    return InvalidArgument("a host without id or name");
  }
  PIPEYARD_RETURN_IF_ERROR(CheckNameIsFree(connection, host));
  PIPEYARD_ASSIGN_OR_RETURN(const int64_t facts, InternFacts(connection, host.facts));
  PIPEYARD_ASSIGN_OR_RETURN(int64_t row, LookUpHost(connection, host.host_id));
  if (row != 0) {
    PIPEYARD_RETURN_IF_ERROR(UpdateHost(connection, row, host, facts));
  } else {
    PIPEYARD_ASSIGN_OR_RETURN(row, InsertHost(connection, host, facts));
  }
  PIPEYARD_RETURN_IF_ERROR(NoteFacts(connection, row, facts, host.last_seen_utc));
  const Result<int64_t> boot = InternBoot(connection, row, host.boot_id, host.last_seen_utc);
  if (!boot.ok()) return boot.status();
  return ReplaceCapabilities(connection, row, host.capabilities);
}

Status Write(Connection& connection, const TouchHost& mutation) {
  PIPEYARD_RETURN_IF_ERROR(RunSql(
      connection, "UPDATE hosts SET last_seen_utc = max(last_seen_utc, ?2) WHERE host_id = ?1",
      mutation.host_id, mutation.last_seen_utc));
  if (connection.num_changes() == 0) return NotFound(fmt::format("no host {}", mutation.host_id));
  return Status::Ok();
}

Result<std::vector<HostRecord>> ListHosts(Connection& connection) {
  std::vector<HostRecord> hosts;
  std::unordered_map<int64_t, size_t> index_of;
  Query query(connection,
              "SELECT host, host_id, name, boot_id, agent_version, first_seen_utc, last_seen_utc, "
              "content FROM hosts JOIN facts USING (facts) ORDER BY name");
  while (query.Next()) {
    index_of[query.Int(0)] = hosts.size();
    HostRecord& host = hosts.emplace_back();
    host.host_id = query.Text(1);
    host.name = query.Text(2);
    host.boot_id = query.Text(3);
    host.agent_version = query.Text(4);
    host.first_seen_utc = query.Int(5);
    host.last_seen_utc = query.Int(6);
    PIPEYARD_ASSIGN_OR_RETURN(host.facts, FactsFromJson(query.Text(7)));
  }
  PIPEYARD_RETURN_IF_ERROR(query.status());
  Query labels(connection, "SELECT host, name, value FROM host_labels");
  while (labels.Next()) {
    hosts[index_of.at(labels.Int(0))].labels[labels.Text(1)] = labels.Text(2);
  }
  PIPEYARD_RETURN_IF_ERROR(labels.status());
  Query capabilities(connection,
                     "SELECT host, capability FROM host_capabilities ORDER BY host, capability");
  while (capabilities.Next()) {
    hosts[index_of.at(capabilities.Int(0))].capabilities.push_back(capabilities.Text(1));
  }
  PIPEYARD_RETURN_IF_ERROR(capabilities.status());
  return hosts;
}

Result<int64_t> FindHost(Connection& connection, const std::string& host_id) {
  PIPEYARD_ASSIGN_OR_RETURN(const int64_t row, LookUpHost(connection, host_id));
  if (row == 0) return NotFound(fmt::format("no host {}", host_id));
  return row;
}

Result<int64_t> InternBoot(Connection& connection, int64_t host, const std::string& boot_id,
                           int64_t seen_utc) {
  if (boot_id.empty()) return int64_t{0};
  Query find(connection, "SELECT boot FROM boots WHERE host = ?1 AND boot_id = ?2", host, boot_id);
  if (find.Next()) return find.Int(0);
  PIPEYARD_RETURN_IF_ERROR(find.status());
  PIPEYARD_RETURN_IF_ERROR(
      RunSql(connection, "INSERT INTO boots (host, boot_id, first_seen_utc) VALUES (?1, ?2, ?3)",
             host, boot_id, seen_utc));
  return connection.last_insert_rowid();
}

}  // namespace pipeyard::storage
