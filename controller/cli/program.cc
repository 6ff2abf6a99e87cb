#include "controller/cli/program.h"

namespace pipeyard::cli {
namespace {

using options::Command;
using options::Option;
using options::Positional;

Option Output() {
  return {.name = "output",
          .short_name = 'o',
          .value_name = "FORMAT",
          .help = "how to print",
          .default_value = "table",
          .choices = {"table", "json"}};
}

Option Sets() {
  return {.name = "set",
          .value_name = "NAME=VALUE",
          .help = "replace a setting, or a whole factor with [a, b]; may be repeated",
          .repeats = true};
}

// Where the task's interleaving stands.
Option Prev() {
  return {.name = "prev",
          .value_name = "NODE",
          .help = "the node that interleaving used last; default: a fresh task (63)"};
}

Option Carry() {
  return {.name = "carry",
          .value_name = "PAGES",
          .help = "pages that node still has to give; default: 0"};
}

Option CommandsFolder() {
  return {.name = "commands",
          .value_name = "DIR",
          .help = "a commands.d; default: that of this machine's agent"};
}

const Positional kCommandName{.name = "NAME",
                              .help = "a preset, or a file NAME.yaml of the folder"};
const Positional kSweepFile{.name = "FILE", .help = "a sweep file (docs/SWEEPS.md)"};
const Positional kRun{.name = "RUN", .help = "an id or a unique prefix of one, latest, or SWEEP~N"};
const Positional kTrial{.name = "TRIAL",
                        .help =
                            "HOST/VARIANT/INDEX, as `run show` prints it; a unique prefix of "
                            "the variant's id is enough"};
const Positional kAttempt{.name = "ATTEMPT",
                          .help = "its number, or a unique prefix of its id; default: the last one",
                          .is_required = false};

std::vector<Command> Commands() {
  return {
      {.path = "demo",
       .help = "run a controller, agents and the ready sweeps on this machine",
       .options =
           {{.name = "quick", .help = "one sweep, under two minutes"},
            {.name = "hosts", .value_name = "N", .help = "how many agents", .default_value = "2"},
            {.name = "state",
             .value_name = "DIR",
             .help = "where everything is kept (default: a new folder)"}}},
      {.path = "sweep validate",
       .help = "all problems of a sweep file, or its expanded form",
       .positionals = {kSweepFile},
       .options = {Sets(), Output()}},
      {.path = "sweep plan",
       .help = "what a sweep would run on each host",
       .positionals = {kSweepFile},
       .options = {Sets(), Output()}},
      {.path = "sweep submit",
       .help = "run a sweep; prints the run's id",
       .positionals = {kSweepFile},
       .options = {{.name = "watch", .help = "show progress, then the comparison"},
                   Sets(),
                   {.name = "label",
                    .value_name = "K=V",
                    .help = "label the run; a key of up to 63 bytes; may be repeated",
                    .repeats = true},
                   {.name = "note", .value_name = "TEXT", .help = "a note kept with the run"},
                   Output()}},
      {.path = "run list",
       .help = "runs, newest first",
       .options =
           {{.name = "limit", .value_name = "N", .help = "at most so many", .default_value = "50"},
            Output()}},
      {.path = "run show",
       .help = "cells, trials and attempts of a run",
       .positionals = {kRun},
       .options = {Output()}},
      {.path = "run watch",
       .help = "live progress, then the comparison",
       .positionals = {kRun},
       .options = {Output()}},
      {.path = "run log",
       .help = "what one attempt printed, and the kernel's messages meanwhile",
       .positionals = {kRun, kTrial, kAttempt},
       .options = {Output()}},
      {.path = "run reproduce",
       .help = "a shell script that repeats a trial by hand",
       .positionals = {kRun, kTrial, kAttempt}},
      {.path = "run cancel",
       .help = "end a run; what it has measured is kept",
       .positionals = {kRun},
       .options = {Output()}},
      {.path = "host list", .help = "the hosts that the controller knows", .options = {Output()}},
      {.path = "host show",
       .help = "a host's facts",
       .positionals = {{.name = "HOST", .help = "its name or id"}},
       .options = {Output()}},
      {.path = "diff",
       .help = "what changed, and is it real",
       .positionals = {{.name = "A",
                        .help = "a run, RUN@VARIANT or RUN/HOST; the baseline where B is given"},
                       {.name = "B",
                        .help = "the same; without it, A is compared along its compared factor",
                        .is_required = false}},
       .options = {{.name = "exit-code", .help = "exit 1 for a regression, 3 where inconclusive"},
                   {.name = "force", .help = "compare emulated with real topologies too"},
                   Output()}},
      {.path = "stat",
       .help = "compare two files of numbers, one a line; - is standard input",
       .positionals = {{.name = "A", .help = "the baseline"},
                       {.name = "B", .help = "the candidate"}},
       .options = {{.name = "better",
                    .value_name = "DIRECTION",
                    .help = "which way is better",
                    .default_value = "none",
                    .choices = {"higher", "lower", "none"}},
                   {.name = "min-change",
                    .value_name = "PERCENT",
                    .help = "smallest change worth a verdict",
                    .default_value = "2%"},
                   {.name = "exit-code", .help = "exit 1 for a regression, 3 where inconclusive"},
                   Output()}},
      {.path = "command list",
       .help = "the commands that a commands.d allows, and the presets",
       .options = {CommandsFolder(), Output()}},
      {.path = "command show",
       .help = "a command's parameters and what is read from its output",
       .positionals = {kCommandName},
       .options = {CommandsFolder(), Output()}},
      {.path = "command test",
       .help = "what a command's rules read from a sample of its output",
       .positionals = {kCommandName,
                       {.name = "FILE",
                        .help = "the sample; - or none: standard input",
                        .is_required = false}},
       .options = {CommandsFolder(),
                   {.name = "from",
                    .value_name = "SOURCE",
                    .help = "only the rules that read from there; default: all, as if the sample "
                            "stood in each",
                    .choices = {"stdout", "stderr", "file"}},
                   Output()}},
      {.path = "explain bulk",
       .help = "what a weighted bulk allocation asks of each node",
       .options = {{.name = "weights",
                    .value_name = "NODE=WEIGHT,..",
                    .help = "the nodes of the policy and their weights, 1..255"},
                   Prev(),
                   Carry(),
                   {.name = "pages", .value_name = "N", .help = "how many pages are wanted"},
                   {.name = "algorithm",
                    .value_name = "NAME",
                    .help = "as engine.interleave_bulk: split-carry, single-step, folded-carry",
                    .default_value = "split-carry"},
                   Output()}},
      {.path = "explain metadata",
       .help = "where a pipe's objects are asked for, and why",
       .options = {{.name = "slots",
                    .value_name = "N",
                    .help = "slots of the ring; created with 16, then resized",
                    .default_value = "16"},
                   {.name = "policy",
                    .value_name = "POLICY",
                    .help = "as engine.policy",
                    .default_value = "default"},
                   {.name = "placement",
                    .value_name = "NAME",
                    .help = "as engine.metadata_placement: any-node, policy-node, strict-policy; "
                            "default: all three"},
                   {.name = "cpu-node",
                    .value_name = "NODE",
                    .help =
                        "the node of the CPU that creates the pipe; default: the lowest with CPUs"},
                   {.name = "nodes",
                    .value_name = "N",
                    .help = "a machine with N nodes instead of this one"},
                   {.name = "distances",
                    .value_name = "ROWS",
                    .help = "its distances, such as 10,21/21,10; default: 10 and 20"},
                   {.name = "page-bytes",
                    .value_name = "SIZE",
                    .help = "size of a page",
                    .default_value = "4KiB"},
                   Prev(),
                   Carry(),
                   Output()}},
  };
}

}  // namespace

options::Program MakeProgram() {
  return {.name = "pipeyard",
          .help =
              "Schedules pipe and memory-placement experiments on a fleet and says what changed "
              "and whether it is real.",
          .footer =
              "Exit status: 0 done, 1 regression, 2 wrong command or file, 3 inconclusive, 4 no "
              "controller,\n"
              "5 no such thing, 6 cells lack trials, 130 interrupted.\n"
              "Environment: PIPEYARD_CONTROLLER, PIPEYARD_CONFIG, NO_COLOR.",
          .options = {{.name = "controller",
                       .value_name = "ADDR",
                       .help = "the controller's address",
                       .default_value = "127.0.0.1:7420"},
                      {.name = "no-color", .help = "never color (as NO_COLOR does)"}},
          .commands = Commands()};
}

}  // namespace pipeyard::cli
