// The object that CMake compiles the tests' common headers for.
