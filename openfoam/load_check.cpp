// SPDX-License-Identifier: GPL-3.0-or-later
// A library that was built for labels or scalars of another size, or for another release, loads without a word and
// then corrupts memory. OpenFOAM says what it is in two symbols; this looks at them before any other code here runs,
// and ends the program with a sentence where they differ. No OpenFOAM header: nothing here may depend on what is
// checked.
#include <dlfcn.h>

#include <cstdlib>
#include <iostream>
#include <string>

#ifndef WM_LABEL_SIZE
#error "WM_LABEL_SIZE is the size of OpenFOAM's labels in bits"
#endif

namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  std::cout.flush();
  std::cerr << "\n\n--> FOAM FATAL ERROR: \nlibkriluFoam.so " << sentence
            << "\nBuild it for the OpenFOAM that loads it: docs/openfoam.md\n\nFOAM exiting\n"
            << std::endl;
  std::_Exit(1);
}

/// 64 of "LSB;label=32;scalar=64" and "scalar"; 0 where there is none.
int bits_of(const std::string& architecture, const std::string& what) {
  const std::size_t at = architecture.find(what + "=");
  return at == std::string::npos ? 0 : std::atoi(architecture.c_str() + at + what.size() + 1);
}

__attribute__((constructor(101))) void check() {
  // Foam::foamVersion::api and Foam::foamVersion::buildArch, initialised before a library that needs libOpenFOAM.
  const auto* api = static_cast<const int*>(dlsym(RTLD_DEFAULT, "_ZN4Foam11foamVersion3apiE"));
  const auto* architecture =
      static_cast<const std::string*>(dlsym(RTLD_DEFAULT, "_ZN4Foam11foamVersion9buildArchB5cxx11E"));
  if (!api || !architecture)
    refuse("was built for OpenFOAM v" + std::to_string(OPENFOAM) + ", and the one that loads it is another.");
  if (*api != OPENFOAM)
    refuse("was built for OpenFOAM v" + std::to_string(OPENFOAM) + ", and this is v" + std::to_string(*api) + ".");
  const int label = bits_of(*architecture, "label"), scalar = bits_of(*architecture, "scalar");
  if (label != 0 && label != WM_LABEL_SIZE)
    refuse("was built for labels of " + std::to_string(WM_LABEL_SIZE) + " bits, and those of this OpenFOAM have " +
           std::to_string(label) + ".");
  if (scalar != 0 && scalar != 64)
    refuse("works in double precision, and scalars of this OpenFOAM have " + std::to_string(scalar) + " bits.");
}

}  // namespace
