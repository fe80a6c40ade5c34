#ifndef SOFTLOOKUP_TESTS_FUZZ_TARGETS_H_
#define SOFTLOOKUP_TESTS_FUZZ_TARGETS_H_

#include <cstddef>
#include <cstdint>

namespace softlookup::fuzz {

// A target hands any bytes to a decoder and aborts if what comes back is not what its header says.
// Each is a libFuzzer binary, and fuzz_corpus_test runs each on its corpus.

// What a server receives. The first byte chooses the request's type, the second in which pieces
// the rest, the message, arrives.
void FuzzRequest(const std::uint8_t* bytes, std::size_t size);
// The same bytes as several requests, for an engine to answer.
void FuzzEngine(const std::uint8_t* bytes, std::size_t size);
// A `traceparent` header.
void FuzzTraceContext(const std::uint8_t* bytes, std::size_t size);

// What ranges of a store answer to a router, and what it asks them. The first byte chooses the
// message's type.
void FuzzRanges(const std::uint8_t* bytes, std::size_t size);

// What an operator writes: the auth file, and numbers of bytes and addresses in flags.
void FuzzAuthFile(const std::uint8_t* bytes, std::size_t size);
void FuzzFlagText(const std::uint8_t* bytes, std::size_t size);

// What lies in a data directory. The first byte chooses the record's kind.
void FuzzLogRecord(const std::uint8_t* bytes, std::size_t size);
// A whole log, from which a store is loaded; LogText() in store_log.h makes such bytes.
void FuzzStoreLog(const std::uint8_t* bytes, std::size_t size);

// Files that the command-line tool reads.
void FuzzCsv(const std::uint8_t* bytes, std::size_t size);
void FuzzFvecs(const std::uint8_t* bytes, std::size_t size);
void FuzzNpy(const std::uint8_t* bytes, std::size_t size);
// Ids up to the first zero byte, labels behind it.
void FuzzRowTags(const std::uint8_t* bytes, std::size_t size);

}  // namespace softlookup::fuzz

#endif  // SOFTLOOKUP_TESTS_FUZZ_TARGETS_H_
