#pragma once

/// One walk over the updates of a round, tile by tile, that writes the next model and state.
///
/// Tiles are computed by any number of threads, a band of them at a time; while one band is
/// computed, the band before it is hashed and written in order. What a tile holds depends only on
/// its place in the model, so neither the number of threads nor who computes a tile can change a
/// bit.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "strategy/aggregate/aggregate.h"
#include "strategy/internal/float_mean.h"
#include "strategy/internal/integer_mean.h"
#include "strategy/internal/server_step.h"
#include "tensor/safetensors.h"

namespace fl::strategy::internal {

/// What a pass works on. Everything outlives it.
struct PassInput {
  const Rule* rule = nullptr;
  const tensor::Header* reference = nullptr;        ///< the output's names, dtypes, shapes, order
  const tensor::SafetensorsFile* global = nullptr;  ///< null where the rule does not need it
  const tensor::SafetensorsFile* state = nullptr;   ///< null in the first round
  int64_t step = 1;                                 ///< number of this rule's step, from 1
  std::span<const Update> updates;  ///< weights > 0, by client id, signatures checked
};

/// Files written in full, not yet committed.
struct PassFiles {
  tensor::SafetensorsWriter output;
  std::optional<tensor::SafetensorsWriter> state;
};

/// A value that must not be stored.
struct PassFault {
  std::string tensor;
  tensor::DType dtype;
};

class TilePass {
 public:
  explicit TilePass(const PassInput& input);

  /// Runs the pass. Where a source is not finite, or a step leaves the range of its tensor's dtype,
  /// `fault` says where (the first such tile) and the error's code is kFailedPrecondition.
  base::Result<PassFiles> Run(const AggregateRequest& request, std::optional<PassFault>& fault);

 private:
  /// A tensor, and where its values lie.
  struct Work {
    const tensor::TensorInfo* info = nullptr;
    std::vector<std::span<const uint8_t>> sources;
    std::span<const uint8_t> global;
    struct Slot {
      std::span<const uint8_t> before;  // empty in the first round
      uint64_t file_offset = 0;         // in the data section of the next state
    };
    std::vector<Slot> slots;
  };
  struct Tile {
    std::shared_ptr<const Work> work;
    uint64_t first = 0;  // element
    size_t count = 0;
    size_t output_offset = 0;  // in the band's output
    size_t state_offset = 0;   // in each of the band's slots
    bool fault = false;
  };
  struct Band {
    std::vector<Tile> tiles;
    std::vector<uint8_t> output;
    std::vector<std::vector<uint8_t>> slots;
  };

  std::shared_ptr<const Work> MakeWork(const tensor::TensorInfo& info) const;
  /// The next tiles of the model, with buffers for them; no tiles at its end.
  void FillBand(Band& band);
  /// Sets tile.fault.
  void ComputeTile(Band& band, Tile& tile) const;
  /// Elements [begin, begin + count) of a floating tile, count ≤ kBlock; `sources` point at them.
  /// False where a value would not be finite.
  bool ComputeBlock(Band& band, const Tile& tile, size_t begin, size_t count,
                    const uint8_t* const* sources) const;
  static base::Status WriteBand(const Band& band, PassFiles& files);

  const PassInput input_;
  const std::vector<std::string_view> slot_names_;
  std::optional<tensor::Header> state_header_;
  std::optional<FloatMean> float_mean_;
  std::optional<IntegerMean> integer_mean_;
  std::optional<ServerStep> server_step_;

  size_t next_tensor_ = 0;
  uint64_t next_element_ = 0;
  std::shared_ptr<const Work> next_work_;
};

}  // namespace fl::strategy::internal
