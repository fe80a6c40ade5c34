#include "tests/benchmarks/cluster/process_use.h"

#include <unistd.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace softlookup::testing {

double CpuSeconds(const std::vector<pid_t>& processes) {
  double ticks = 0;
  for (const pid_t process : processes) {
    std::ifstream file(absl::StrCat("/proc/", process, "/stat"));
    std::string text;
    std::getline(file, text, ')');  // The name can have spaces.
    double user = 0, system = 0;
    for (int field = 3; field < 14; ++field) file >> text;
    if (file >> user >> system) ticks += user + system;
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double ResidentMib(pid_t process) {
  std::ifstream file(absl::StrCat("/proc/", process, "/statm"));
  double size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

}  // namespace softlookup::testing
