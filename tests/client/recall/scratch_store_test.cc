#include "client/recall/scratch_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/client/scripted_service.h"
#include "tests/testing/patient_options.h"

namespace softlookup::recall {
namespace {

using ::softlookup::testing::DetailedStatus;
using ::softlookup::testing::PatientOptions;
using ::softlookup::testing::ScriptedService;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class ScratchStoreTest : public ::testing::Test {
 protected:
  ScratchStoreTest() : client_(*Client::Connect(service_.address(), PatientOptions())) {
    service_.create_store = [this](grpc::ServerContext*, const v1::CreateStoreRequest& request,
                                   v1::Store* store) {
      created_.push_back(request.store().name());
      *store = request.store();
      return create_status_;
    };
    service_.delete_store = [this](grpc::ServerContext*, const v1::DeleteStoreRequest& request,
                                   v1::DeleteStoreResponse*) {
      deleted_.push_back(request.name());
      return delete_status_;
    };
    service_.append = [](auto*, auto&, auto*) { return grpc::Status::OK; };
    service_.lookup = [this](auto*, auto&, auto*) {
      interrupted_ = true;
      return grpc::Status::OK;
    };
  }

  absl::StatusOr<std::unique_ptr<ScratchStore>> Create() {
    return ScratchStore::Create(&client_, "recall", {}, interrupted_);
  }

  std::vector<std::string> created_;
  std::vector<std::string> deleted_;
  grpc::Status create_status_;
  grpc::Status delete_status_;
  std::atomic<bool> interrupted_ = false;  // Set by the first lookup.
  ScriptedService service_;
  Client client_;
};

TEST_F(ScratchStoreTest, IsDeletedWithTheObject) {
  {
    const auto store = Create();
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_THAT(created_, ElementsAre((*store)->name()));
    EXPECT_THAT(created_[0], StartsWith(absl::StrCat("recall/", getpid(), "-")));
    EXPECT_THAT(deleted_, IsEmpty());
  }
  EXPECT_EQ(deleted_, created_);
}

TEST_F(ScratchStoreTest, IsDeletedOnceAndSaysIfThatFailed) {
  delete_status_ = grpc::Status(grpc::StatusCode::INTERNAL, "no");
  EXPECT_EQ((*Create())->Delete().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(deleted_, created_);
}

TEST_F(ScratchStoreTest, HasANameOfItsOwn) {
  Create().IgnoreError();
  Create().IgnoreError();
  ASSERT_EQ(created_.size(), 2u);
  EXPECT_NE(created_[0], created_[1]);
}

TEST_F(ScratchStoreTest, IsDeletedIfTheAnswerToItsCreationWasLost) {
  create_status_ = grpc::Status(grpc::StatusCode::UNAVAILABLE, "cut");
  EXPECT_EQ(Create().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(deleted_, created_);
}

TEST_F(ScratchStoreTest, NeverDeletesAStoreThatIsNotItsOwn) {
  create_status_ = DetailedStatus(grpc::StatusCode::ALREADY_EXISTS, "taken", "STORE_EXISTS");
  EXPECT_EQ(Create().status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(deleted_, IsEmpty());
}

TEST_F(ScratchStoreTest, AnInterruptionFailsLaterCallsSoThatItIsDeleted) {
  {
    const auto store = *Create();
    EXPECT_TRUE(store->Append({}, {}).ok());
    EXPECT_TRUE(store->Lookup({}, {}).ok());  // It comes during this call.
    EXPECT_TRUE(absl::IsCancelled(store->Lookup({}, {}).status()));
    EXPECT_TRUE(absl::IsCancelled(store->Append({}, {})));
  }
  EXPECT_EQ(deleted_, created_);
}

}  // namespace
}  // namespace softlookup::recall
