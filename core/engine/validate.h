#ifndef SOFTLOOKUP_CORE_ENGINE_VALIDATE_H_
#define SOFTLOOKUP_CORE_ENGINE_VALIDATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/limits.h"
#include "core/base/matrix_view.h"
#include "softlookup/engine.h"
#include "softlookup/store_config.h"

namespace softlookup {

// Checks of requests, made before anything is changed or scanned. Each returns OK, or an error,
// mostly INVALID_ARGUMENT. The error names the field and, if one row is wrong, the row.

// Checks that `name` has 1-128 characters, is [A-Za-z0-9][A-Za-z0-9._/-]*, and has no "..".
absl::Status CheckStoreName(absl::string_view field, absl::string_view name);
absl::Status CheckStoreConfig(const StoreConfig& config);
// Checks the update's new values. `config` is the store's.
absl::Status CheckStoreUpdate(const StoreUpdate& update, const StoreConfig& config);

// Checks both names, and that they differ.
absl::Status CheckStoreRename(const StoreRename& rename);

// Checks that `writer` has 1-128 bytes.
absl::Status CheckWriterName(absl::string_view writer);

// Checks that `matrix` has no NaN and no infinity.
absl::Status CheckFinite(absl::string_view field, const MatrixView& matrix);

// Checks everything in an append that depends neither on the store's rows nor on the names of its
// memories. FindMemory checks the names in `return_memories`.
absl::Status CheckAppend(const AppendRequest& request, const StoreConfig& config,
                         const Limits& limits);
// Makes all checks of CheckLookup except those against the store's projection. A later update may
// set or replace the projection. The result of the other checks holds for the life of the store.
absl::Status CheckLookupExceptProjection(const LookupRequest& request, const StoreConfig& config,
                                         const Limits& limits);
// Checks the queries or inputs of a lookup, and its options. The filter and the name of the memory
// are checked where they are used, by RowSelection::Make and FindMemory.
absl::Status CheckLookup(const LookupRequest& request, const StoreConfig& config,
                         const Limits& limits);

// Checks everything in an Attend. Returns its cost in multiply-adds of a scan (core/base/cost.h).
absl::StatusOr<double> CheckAttend(const AttendRequest& request, const Limits& limits);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_VALIDATE_H_
