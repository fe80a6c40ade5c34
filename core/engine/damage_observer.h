#ifndef SOFTLOOKUP_CORE_ENGINE_DAMAGE_OBSERVER_H_
#define SOFTLOOKUP_CORE_ENGINE_DAMAGE_OBSERVER_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "softlookup/engine.h"

namespace softlookup {

// Calls a function with each damage that Engine::Load() finds, and observes nothing else.
class DamageObserver final : public LoadObserver {
 public:
  // What `on_damage` refers to must outlive this object.
  explicit DamageObserver(absl::FunctionRef<void(const absl::Status&)> on_damage)
      : on_damage_(on_damage) {}

  void OnDamage(const absl::Status& damage) override { on_damage_(damage); }

 private:
  const absl::FunctionRef<void(const absl::Status&)> on_damage_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_DAMAGE_OBSERVER_H_
