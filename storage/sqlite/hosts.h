// Hosts: who they are, what they are made of, and since when.
//
// Thread safety: the Connection's. Errors: those of Store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "storage/sqlite/connection.h"
#include "storage/store.h"

namespace pipeyard::storage {

// kAlreadyExists where another host has the name.
Status Write(Connection& connection, const UpsertHost& mutation);
// kNotFound where there is no such host. The time never goes back.
Status Write(Connection& connection, const TouchHost& mutation);

// By name.
Result<std::vector<HostRecord>> ListHosts(Connection& connection);

// Row of the host; kNotFound.
Result<int64_t> FindHost(Connection& connection, const std::string& host_id);
// Row of the host's boot, inserted where there is none; 0 for an empty boot_id.
Result<int64_t> InternBoot(Connection& connection, int64_t host, const std::string& boot_id,
                           int64_t seen_utc);

}  // namespace pipeyard::storage
