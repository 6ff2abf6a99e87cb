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

const Positional kSweepFile{.name = "FILE", .help = "a sweep file (docs/SWEEPS.md)"};
const Positional kRun{.name = "RUN", .help = "an id or a unique prefix of one, latest, or SWEEP~N"};

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
                    .help = "label the run; may be repeated",
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
