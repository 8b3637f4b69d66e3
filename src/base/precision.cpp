// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "base/half.hpp"
#include "base/names.hpp"

namespace krilu {

namespace {
const std::vector<std::string> formats{"fp64", "fp32", "fp16", "bf16"};
const std::vector<std::string> precisions{"fp64", "fp32", "fp32/fp16", "fp32/bf16"};
}  // namespace

const char* to_string(Format f) { return formats[std::size_t(f)].c_str(); }

Format format_by_name(const std::string& name) {
  require_name("format", name, formats);
  return Format(std::find(formats.begin(), formats.end(), name) - formats.begin());
}

Precision precision_by_name(const std::string& name) {
  require_name("precision", name, precisions);
  if (name == "fp64") return {Format::fp64, Format::fp64};
  return {Format::fp32, name == "fp32" ? Format::fp32 : format_by_name(name.substr(name.find('/') + 1))};
}

std::string to_string(const Precision& p) {
  const std::string arithmetic = to_string(p.arithmetic);
  return p.storage == p.arithmetic ? arithmetic : arithmetic + "/" + to_string(p.storage);
}

}  // namespace krilu
