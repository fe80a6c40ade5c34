#include <ostream>
#include <string>
#include <utility>

#include "tests/core/replication/simulation.h"

namespace softlookup::testing {

void HistoryReport::AddViolation(std::string what) {
  if (violations.size() < 10) violations.push_back(std::move(what));
}

void HistoryReport::Add(const HistoryReport& other) {
  violations.insert(violations.end(), other.violations.begin(), other.violations.end());
  proposed += other.proposed;
  acknowledged += other.acknowledged;
  unknown += other.unknown;
  refused += other.refused;
  elections += other.elections;
  crashes += other.crashes;
  stops += other.stops;
  config_changes += other.config_changes;
  seeded += other.seeded;
}

std::ostream& operator<<(std::ostream& out, const HistoryReport& report) {
  out << report.proposed << " proposed, " << report.acknowledged << " acknowledged, "
      << report.unknown << " unknown, " << report.refused << " refused, " << report.elections
      << " elections, " << report.crashes << " crashes, " << report.stops << " stops, "
      << report.seeded << " seeded, " << report.config_changes << " configurations";
  for (const std::string& violation : report.violations) out << "\nviolation: " << violation;
  return out;
}

}  // namespace softlookup::testing
