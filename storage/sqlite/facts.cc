#include "storage/sqlite/facts.h"

#include <exception>
#include <nlohmann/json.hpp>

#include "storage/sqlite/content_hash.h"

namespace pipeyard::storage {

std::string FactsToJson(const v1::HostFacts& facts) {
  nlohmann::json nodes = nlohmann::json::array();
  for (const v1::NumaNode& node : facts.nodes()) {
    nodes.push_back(
        {{"id", node.id()}, {"cpus", node.cpus()}, {"memory_bytes", node.memory_bytes()}});
  }
  nlohmann::json more = nlohmann::json::object();
  for (const auto& [name, value] : facts.more()) more[name] = value;
  nlohmann::json distances = nlohmann::json::array();
  for (const uint32_t distance : facts.distances()) distances.push_back(distance);
  const nlohmann::json content = {
      {"kernel_release", facts.kernel_release()}, {"machine", facts.machine()},
      {"cpu_model", facts.cpu_model()},           {"online_cpus", facts.online_cpus()},
      {"memory_bytes", facts.memory_bytes()},     {"nodes", std::move(nodes)},
      {"distances", std::move(distances)},        {"page_size_bytes", facts.page_size_bytes()},
      {"hypervisor", facts.hypervisor()},         {"more", std::move(more)}};
  return content.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<v1::HostFacts> FactsFromJson(const std::string& text) {
  try {
    const nlohmann::json content = nlohmann::json::parse(text);
    v1::HostFacts facts;
    facts.set_kernel_release(content.at("kernel_release").get<std::string>());
    facts.set_machine(content.at("machine").get<std::string>());
    facts.set_cpu_model(content.at("cpu_model").get<std::string>());
    facts.set_online_cpus(content.at("online_cpus").get<uint32_t>());
    facts.set_memory_bytes(content.at("memory_bytes").get<uint64_t>());
    for (const nlohmann::json& entry : content.at("nodes")) {
      v1::NumaNode& node = *facts.add_nodes();
      node.set_id(entry.at("id").get<int32_t>());
      node.set_cpus(entry.at("cpus").get<std::string>());
      node.set_memory_bytes(entry.at("memory_bytes").get<uint64_t>());
    }
    for (const nlohmann::json& entry : content.at("distances")) {
      facts.add_distances(entry.get<uint32_t>());
    }
    facts.set_page_size_bytes(content.at("page_size_bytes").get<uint64_t>());
    facts.set_hypervisor(content.at("hypervisor").get<std::string>());
    for (const auto& [name, value] : content.at("more").items()) {
      (*facts.mutable_more())[name] = value.get<std::string>();
    }
    return facts;
  } catch (const std::exception& error) {
    return DataLoss(std::string("facts: ") + error.what());
  }
}

Result<int64_t> InternFacts(Connection& connection, const v1::HostFacts& facts) {
  const std::string content = FactsToJson(facts);
  const std::string hash = ContentHash(content);
  Query find(connection, "SELECT facts FROM facts WHERE sha256 = ?1", Blob{hash});
  if (find.Next()) return find.Int(0);
  PIPEYARD_RETURN_IF_ERROR(find.status());
  PIPEYARD_RETURN_IF_ERROR(RunSql(connection, "INSERT INTO facts (sha256, content) VALUES (?1, ?2)",
                                  Blob{hash}, content));
  return connection.last_insert_rowid();
}

}  // namespace pipeyard::storage
