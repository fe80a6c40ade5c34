// Five people at a party, each with a key and a value: what is near query 1?
//   soft_lookup [ADDRESS=127.0.0.1:7471 [PREFIX=examples]]
// Makes the store PREFIX/party, in place of one of that name, and deletes it at the end.
#include <cstdlib>
#include <iostream>
#include <string>

#include "softlookup/client.h"

int main(int argc, char** argv) {
  // The status also has details, which are bytes: softlookup/error_details.h reads them.
  const auto fail = [](const absl::Status& status) {
    std::cerr << absl::StatusCodeToString(status.code()) << ": " << status.message() << "\n";
    return 1;
  };
  // TLS and a token, if the environment names files of them as it does for `softlookup`.
  const auto file = [](const char* variable) {
    const char* path = std::getenv(variable);
    return std::string(path == nullptr ? "" : path);
  };
  const auto credentials =
      softlookup::LoadCredentials({.tls_ca = file("SOFTLOOKUP_TLS_CA"),
                                   .tls_certificate = file("SOFTLOOKUP_TLS_CERTIFICATE"),
                                   .tls_key = file("SOFTLOOKUP_TLS_KEY"),
                                   .token = file("SOFTLOOKUP_TOKEN_FILE")});
  if (!credentials.ok()) return fail(credentials.status());
  softlookup::ClientOptions options;
  options.credentials = *credentials;
  auto client = softlookup::Client::Connect(argc > 1 ? argv[1] : "127.0.0.1:7471", options);
  if (!client.ok()) return fail(client.status());

  const std::string name = std::string(argc > 2 ? argv[2] : "examples") + "/party";
  // A run that failed, or was killed, has left its store.
  if (auto left = client->DeleteStore(name); !left.ok() && !absl::IsNotFound(left)) {
    return fail(left);
  }
  softlookup::v1::Store store;
  store.set_name(name);
  store.set_key_dim(1);
  store.set_value_dim(1);
  if (auto made = client->CreateStore(store); !made.ok()) return fail(made.status());

  const softlookup::FloatMatrix keys{5, 1, {-1.71f, 0.60f, -1.01f, -0.61f, 2.73f}};
  const softlookup::FloatMatrix values{5, 1, {1, 2, 3, 4, 5}};
  if (auto done = client->Append(name, keys, values); !done.ok()) return fail(done.status());

  auto answer = client->Lookup(name, softlookup::FloatMatrix{1, 1, {1}});
  if (!answer.ok()) return fail(answer.status());
  std::cout << answer->values.data[0] << "\n";  // 4.59: mostly the fifth.

  if (auto deleted = client->DeleteStore(name); !deleted.ok()) return fail(deleted);
}
