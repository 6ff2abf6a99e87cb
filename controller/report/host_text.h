// Hosts as a person reads them: the list, and one host with its facts and a small picture of its
// nodes.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "pipeyard/v1/control.pb.h"

namespace pipeyard::report {

std::string HostListText(const v1::ListHostsResponse& hosts, bool use_colour);
std::string HostText(const v1::Host& host, bool use_colour);

}  // namespace pipeyard::report
