#ifndef SOFTLOOKUP_SERVER_BASE_QUEUE_EVENT_H_
#define SOFTLOOKUP_SERVER_BASE_QUEUE_EVENT_H_

namespace softlookup::server {

// An event that comes out of a completion queue. Its address is the tag of the operation that it
// ends. Must live until OnEvent() is called.
class QueueEvent {
 public:
  // Called once, on a thread of the queue. `ok` is what gRPC says of the operation.
  virtual void OnEvent(bool ok) = 0;

  // The tag.
  void* tag() { return this; }

 protected:
  ~QueueEvent() = default;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_BASE_QUEUE_EVENT_H_
