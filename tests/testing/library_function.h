#ifndef SOFTLOOKUP_TESTS_TESTING_LIBRARY_FUNCTION_H_
#define SOFTLOOKUP_TESTS_TESTING_LIBRARY_FUNCTION_H_

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace softlookup::testing {

// Returns a shared library's function `name`, although this program defines one of that name, too.
// `name` is what the linker knows. Ends the program if no library has it.
template <typename Function>
Function LibraryFunction(const char* name) {
  void* const symbol = dlsym(RTLD_NEXT, name);
  if (symbol == nullptr) {
    std::fprintf(stderr, "no library has the function %s\n", name);
    std::abort();
  }
  return reinterpret_cast<Function>(symbol);
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_LIBRARY_FUNCTION_H_
