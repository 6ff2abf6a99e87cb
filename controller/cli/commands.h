// The commands of `pipeyard`, each from its parsed arguments to its exit status.
//
// Thread safety: confined to main's thread.
#pragma once

#include "controller/cli/console.h"
#include "proto/options/options.h"

namespace pipeyard::cli {

// Runs the command that was parsed and returns its exit status.
int RunCommand(const Console& console, const options::Parsed& parsed);

int SweepValidate(const Console& console, const options::Parsed& parsed);
int SweepPlan(const Console& console, const options::Parsed& parsed);
int SweepSubmit(const Console& console, const options::Parsed& parsed);
int RunList(const Console& console, const options::Parsed& parsed);
int RunShow(const Console& console, const options::Parsed& parsed);
int RunWatch(const Console& console, const options::Parsed& parsed);
int RunLog(const Console& console, const options::Parsed& parsed);
int RunReproduce(const Console& console, const options::Parsed& parsed);
int RunCancel(const Console& console, const options::Parsed& parsed);
int HostList(const Console& console, const options::Parsed& parsed);
int HostShow(const Console& console, const options::Parsed& parsed);
int Diff(const Console& console, const options::Parsed& parsed);
int Stat(const Console& console, const options::Parsed& parsed);
int CommandList(const Console& console, const options::Parsed& parsed);
int CommandShow(const Console& console, const options::Parsed& parsed);
int CommandTest(const Console& console, const options::Parsed& parsed);
int ExplainBulk(const Console& console, const options::Parsed& parsed);
int ExplainMetadata(const Console& console, const options::Parsed& parsed);
int Demo(const Console& console, const options::Parsed& parsed);

}  // namespace pipeyard::cli
