#ifndef SOFTLOOKUP_TESTS_CLIENT_DATED_CERTIFICATES_H_
#define SOFTLOOKUP_TESTS_CLIENT_DATED_CERTIFICATES_H_

// Certificates that no test runs in the dates of, signed by themselves. Their private keys are
// gone.
namespace softlookup::testing {

// Valid from 2020-01-01T00:00:00Z to 2020-02-01T12:34:56Z.
inline constexpr char kExpiredCertificate[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBIDCByKADAgECAhQfRDyyl7xIHS9LXcVWohZIrIml2TAKBggqhkjOPQQDAjAR\n"
    "MQ8wDQYDVQQDDAZjbGllbnQwHhcNMjAwMTAxMDAwMDAwWhcNMjAwMjAxMTIzNDU2\n"
    "WjARMQ8wDQYDVQQDDAZjbGllbnQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATZ\n"
    "kSnVfWcOBytzIHEYRj4l2lTPpR3DgfDgGdmtzdoWZKJeOR2q/CGT4v5K6bffblar\n"
    "+aO0f6pri2WxVJmsiThGMAoGCCqGSM49BAMCA0cAMEQCIDwuaJYdUTa5fs+bRIok\n"
    "RSBjhN/rDJjXOm1pcbrm+7F0AiB0syLhNeYDkYfpQYvG/NPaADD1XXwZMw33aVfR\n"
    "Fgjcvw==\n"
    "-----END CERTIFICATE-----\n";

// Valid from 2999-01-01T01:02:03Z to 2999-12-31T00:00:00Z.
inline constexpr char kFutureCertificate[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBJTCBzKADAgECAhQ0G3iwZOM3PJLgkmZzksT7o7DntjAKBggqhkjOPQQDAjAR\n"
    "MQ8wDQYDVQQDDAZjbGllbnQwIhgPMjk5OTAxMDEwMTAyMDNaGA8yOTk5MTIzMTAw\n"
    "MDAwMFowETEPMA0GA1UEAwwGY2xpZW50MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD\n"
    "QgAErMV+ZxBMxdTvXr9tkczSvPj9m9/YNXaRRvW0BGnp8OgbT7rTGBe56xVTXVtD\n"
    "SvC8X9fwUc7AZMXE/RV80/ywoDAKBggqhkjOPQQDAgNIADBFAiEAw7/Ww3QdBQDF\n"
    "UuvzgRY/wkv4oEU3c0zi4bkmJyKS1+oCICf5NF4HsTBNra3CmepFNhDDbTqWL1xz\n"
    "+tUU2FzkeXUM\n"
    "-----END CERTIFICATE-----\n";

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CLIENT_DATED_CERTIFICATES_H_
