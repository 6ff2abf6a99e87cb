// Facts of this host: what a measurement depends on and nobody sets through Pipeyard. Read once
// when the agent starts; docs/AGENT.md lists every fact and its source.
//
// Nothing here fails as a whole: a fact that cannot be read is absent, and `problems` says why
// where it should have been there. Facts are for people and for comparing runs; no decision of the
// agent depends on one.
//
// Thread safety: pure but for the files read.
#pragma once

#include <string>
#include <vector>

#include "pipeyard/v1/agent.pb.h"
#include "workloads/numa/topology.h"

namespace pipeyard::host {

struct HostFactsReport {
  v1::HostFacts facts;
  std::vector<std::string> problems;
};

// `machine` as uname(2) says it; `page_size_bytes` as sysconf(3) does.
HostFactsReport ReadHostFacts(const numa::ReadFile& read, const std::string& machine,
                              uint64_t page_size_bytes);
// Of the machine this runs on.
HostFactsReport ReadHostFacts();

// The name that the host is shown under unless --name says otherwise: the kernel's node name, with
// characters that no host name may have replaced by '-'; "host" where nothing is left.
std::string DefaultHostName();
std::string HostNameFrom(std::string_view node_name);

}  // namespace pipeyard::host
