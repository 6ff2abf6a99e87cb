// What is on the wire, frozen: a field's number, name and type never change, and a number is never
// used again.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <string>

#include "base/testing/golden.h"
#include "pipeyard/v1/agent.pb.h"
#include "pipeyard/v1/control.pb.h"
#include "pipeyard/v1/worker.pb.h"

namespace pipeyard {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

std::string TypeOf(const FieldDescriptor& field) {
  std::string type = field.type_name();
  if (field.message_type() != nullptr) type = field.message_type()->full_name();
  if (field.enum_type() != nullptr) type = field.enum_type()->full_name();
  if (field.is_map()) return "map " + type;
  return (field.is_repeated()            ? "repeated "
          : field.has_optional_keyword() ? "optional "
                                         : "") +
         type;
}

void Append(const EnumDescriptor& type, std::string& listing) {
  listing += "enum " + type.full_name() + "\n";
  for (int i = 0; i < type.value_count(); ++i) {
    listing += "  " + std::to_string(type.value(i)->number()) + " " + type.value(i)->name() + "\n";
  }
}

void Append(const Descriptor& type, std::string& listing) {
  if (type.options().map_entry()) return;
  listing += "message " + type.full_name() + "\n";
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    listing +=
        "  " + std::to_string(field.number()) + " " + field.name() + ": " + TypeOf(field) + "\n";
  }
  for (int i = 0; i < type.enum_type_count(); ++i) Append(*type.enum_type(i), listing);
  for (int i = 0; i < type.nested_type_count(); ++i) Append(*type.nested_type(i), listing);
}

void Append(const FileDescriptor& file, std::string& listing) {
  for (int i = 0; i < file.enum_type_count(); ++i) Append(*file.enum_type(i), listing);
  for (int i = 0; i < file.message_type_count(); ++i) Append(*file.message_type(i), listing);
  for (int i = 0; i < file.service_count(); ++i) {
    for (int m = 0; m < file.service(i)->method_count(); ++m) {
      const auto& method = *file.service(i)->method(m);
      listing += "rpc " + method.full_name() + "(" + (method.client_streaming() ? "stream " : "") +
                 method.input_type()->name() + ") returns (" +
                 (method.server_streaming() ? "stream " : "") + method.output_type()->name() +
                 ")\n";
    }
  }
}

TEST(Wire, FieldsKeepTheirNumbersNamesAndTypes) {
  std::string listing;
  for (const Descriptor* type :
       {v1::VariantSettings::descriptor(), v1::Metric::descriptor(),
        v1::WorkerRequest::descriptor(), v1::AgentMessage::descriptor(), v1::Run::descriptor()}) {
    Append(*type->file(), listing);
  }
  pipeyard::testing::ExpectGolden(PIPEYARD_SOURCE_DIR "/proto/pipeyard/v1/testdata/wire.golden",
                                  listing);
}

}  // namespace
}  // namespace pipeyard
