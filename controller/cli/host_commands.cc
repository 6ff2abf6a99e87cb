#include "controller/cli/client.h"
#include "controller/cli/commands.h"
#include "controller/cli/connect.h"
#include "controller/cli/exit_code.h"
#include "controller/report/host_text.h"
#include "controller/report/json.h"

namespace pipeyard::cli {

int HostList(const Console& console, const options::Parsed&) {
  return WithController(console, [&](ControlClient& client) {
    const Result<v1::ListHostsResponse> hosts = client.ListHosts();
    if (!hosts.ok()) return console.Fail(hosts.status());
    console.Out(console.format == Format::kJson ? report::HostListJson(*hosts)
                                                : report::HostListText(*hosts, console.is_colored));
    return static_cast<int>(kDone);
  });
}

int HostShow(const Console& console, const options::Parsed& parsed) {
  return WithController(console, [&](ControlClient& client) {
    const Result<v1::Host> host = client.GetHost(parsed.Get("HOST"));
    if (!host.ok()) return console.Fail(host.status());
    console.Out(console.format == Format::kJson ? report::HostJson(*host)
                                                : report::HostText(*host, console.is_colored));
    return static_cast<int>(kDone);
  });
}

}  // namespace pipeyard::cli
