// PipeEnds: which ends of which pipes one worker uses.
//
// Thread safety: a value.
#pragma once

namespace pipeyard::load {

struct PipeEnds {
  int first_pipe = 0;
  int num_pipes = 1;
  bool is_writer = false;  // else it reads
};

}  // namespace pipeyard::load
