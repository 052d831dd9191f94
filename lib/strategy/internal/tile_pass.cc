#include "strategy/internal/tile_pass.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "strategy/internal/state_file.h"

namespace fl::strategy::internal {

using base::Result;
using base::Status;
using tensor::DType;
using tensor::ElementSize;

namespace {

/// Elements of a tile: enough to make one prefetch call worth it for each source, little enough
/// that a few tiles for each thread are a few megabytes.
constexpr size_t kTileElements = 32 * kBlock;
constexpr size_t kBandElements = 16 * kTileElements;
/// A model of many tiny tensors has bands of fewer elements.
constexpr size_t kBandTiles = 4096;

/// FedNova (Wang et al. 2020, eq. 6 with ‖aᵢ‖₁ = τᵢ) as a weighted mean and a factor: with
/// aᵢ = nᵢ/τᵢ, A = Σ aᵢ and N = Σ nᵢ,
///   τ_eff Σ (nᵢ/N)(xᵢ − g)/τᵢ = (τ_eff · A/N) · (Σ aᵢxᵢ / A − g),  τ_eff = Σ nᵢτᵢ / N.
struct Weighting {
  std::vector<double> weights;
  double delta_scale = 1;
};

Weighting WeightingOf(const Rule& rule, std::span<const Update> updates) {
  Weighting result;
  for (const Update& update : updates) result.weights.push_back(update.weight);
  const bool equal_steps = std::all_of(updates.begin(), updates.end(), [&](const Update& update) {
    return update.steps == updates.front().steps;
  });
  if (!rule.normalizes_steps() || equal_steps) return result;
  double samples = 0;
  double sample_steps = 0;
  double normalized = 0;
  for (size_t i = 0; i < updates.size(); ++i) {
    const auto steps = static_cast<double>(updates[i].steps);
    samples += updates[i].weight;
    sample_steps += updates[i].weight * steps;
    result.weights[i] = updates[i].weight / steps;
    normalized += result.weights[i];
  }
  result.delta_scale = (sample_steps / samples) * (normalized / samples);
  return result;
}

}  // namespace

TilePass::TilePass(const PassInput& input) : input_(input), slot_names_(StateSlots(*input.rule)) {
  const Weighting weighting = WeightingOf(*input.rule, input.updates);
  float_mean_.emplace(weighting.weights);
  std::vector<double> samples;
  for (const Update& update : input.updates) samples.push_back(update.weight);
  integer_mean_.emplace(samples);
  server_step_.emplace(*input.rule, weighting.delta_scale, input.step);
}

Result<PassFiles> TilePass::Run(const AggregateRequest& request, std::optional<PassFault>& fault) {
  std::vector<tensor::TensorSpec> specs;
  for (const tensor::TensorInfo& info : input_.reference->tensors()) {
    specs.push_back({info.name, info.dtype, info.shape});
  }
  FL_ASSIGN_OR_RETURN(tensor::SafetensorsWriter output,
                      tensor::SafetensorsWriter::Create(request.output, specs, request.metadata));
  PassFiles files{std::move(output), {}};
  if (input_.rule->keeps_state()) {
    FL_ASSIGN_OR_RETURN(
        files.state, tensor::SafetensorsWriter::Create(request.state_output,
                                                       StateSpecs(*input_.rule, *input_.reference),
                                                       StateMetadata(*input_.rule, input_.step)));
    state_header_ = files.state->header();
  }

  std::array<Band, 2> bands;
  for (size_t turn = 0;; ++turn) {
    Band& band = bands[turn % 2];
    const Band& written = bands[(turn + 1) % 2];
    FillBand(band);
    Status write_status;
    base::ThreadPool::ParallelFor(request.pool, band.tiles.size() + 1, [&](size_t i) {
      if (i == 0) {
        write_status = WriteBand(written, files);
      } else {
        ComputeTile(band, band.tiles[i - 1]);
      }
    });
    FL_RETURN_IF_ERROR(write_status);
    for (const Tile& tile : band.tiles) {
      if (!tile.fault) continue;
      fault = PassFault{tile.work->info->name, tile.work->info->dtype};
      return base::FailedPrecondition("tensor " + tensor::Quote(fault->tensor) +
                                      " would hold a value that is not finite");
    }
    if (band.tiles.empty()) return files;
  }
}

std::shared_ptr<const TilePass::Work> TilePass::MakeWork(const tensor::TensorInfo& info) const {
  auto work = std::make_shared<Work>();
  work->info = &info;
  const auto data = [](const tensor::SafetensorsFile& file, const std::string& name) {
    const tensor::TensorInfo* found = file.header().Find(name);
    FL_CHECK(found != nullptr);
    return file.Data(*found);
  };
  for (const Update& update : input_.updates) {
    work->sources.push_back(data(*update.tensors, info.name));
    FL_CHECK(work->sources.back().size() == info.byte_size());
  }
  if (!tensor::IsFloating(info.dtype)) return work;
  if (input_.global != nullptr) work->global = data(*input_.global, info.name);
  for (const std::string_view slot : slot_names_) {
    const std::string name = StateTensorName(slot, info.name);
    Work::Slot& target = work->slots.emplace_back();
    target.file_offset = state_header_->Find(name)->begin;
    if (input_.state != nullptr) target.before = data(*input_.state, name);
  }
  return work;
}

void TilePass::FillBand(Band& band) {
  band.tiles.clear();
  const std::vector<tensor::TensorInfo>& tensors = input_.reference->tensors();
  size_t elements = 0;
  size_t output_bytes = 0;
  size_t state_bytes = 0;
  while (next_tensor_ < tensors.size() && elements < kBandElements &&
         band.tiles.size() < kBandTiles) {
    const tensor::TensorInfo& info = tensors[next_tensor_];
    if (next_element_ == info.element_count()) {
      ++next_tensor_;
      next_element_ = 0;
      next_work_ = nullptr;
      continue;
    }
    if (next_work_ == nullptr) next_work_ = MakeWork(info);
    Tile& tile = band.tiles.emplace_back();
    tile.work = next_work_;
    tile.first = next_element_;
    tile.count = static_cast<size_t>(
        std::min<uint64_t>(kTileElements, info.element_count() - next_element_));
    tile.output_offset = output_bytes;
    tile.state_offset = state_bytes;
    next_element_ += tile.count;
    elements += tile.count;
    output_bytes += tile.count * ElementSize(info.dtype);
    if (tensor::IsFloating(info.dtype)) {
      state_bytes += tile.count * ElementSize(StateDType(info.dtype));
    }
  }
  band.output.resize(output_bytes);
  band.slots.resize(slot_names_.size());
  for (std::vector<uint8_t>& slot : band.slots) slot.resize(state_bytes);
}

void TilePass::ComputeTile(Band& band, Tile& tile) const {
  const Work& work = *tile.work;
  const size_t size = ElementSize(work.info->dtype);
  const uint64_t offset = tile.first * size;
  std::vector<const uint8_t*> sources;
  sources.reserve(work.sources.size());
  for (const std::span<const uint8_t> source : work.sources) {
    sources.push_back(source.data() + offset);
  }
  if (!tensor::IsFloating(work.info->dtype)) {
    integer_mean_->Compute(work.info->dtype, sources.data(), tile.count,
                           band.output.data() + tile.output_offset);
    return;
  }
  std::vector<const uint8_t*> block(sources.size());
  for (size_t begin = 0; begin < tile.count && !tile.fault; begin += kBlock) {
    const size_t count = std::min(kBlock, tile.count - begin);
    for (size_t k = 0; k < sources.size(); ++k) block[k] = sources[k] + begin * size;
    tile.fault = !ComputeBlock(band, tile, begin, count, block.data());
  }
}

bool TilePass::ComputeBlock(Band& band, const Tile& tile, size_t begin, size_t count,
                            const uint8_t* const* sources) const {
  const Work& work = *tile.work;
  const DType dtype = work.info->dtype;
  std::array<double, kBlock> values;
  if (!float_mean_->Compute(dtype, sources, count, values.data())) return false;
  if (!server_step_->is_identity()) {
    std::array<double, kBlock> global;
    tensor::DecodeToDouble(dtype, work.global.data() + (tile.first + begin) * ElementSize(dtype),
                           count, global.data());
    const DType state_dtype = StateDType(dtype);
    const size_t state_size = ElementSize(state_dtype);
    std::array<std::array<double, kBlock>, 2> state;
    for (size_t slot = 0; slot < work.slots.size(); ++slot) {
      const std::span<const uint8_t> before = work.slots[slot].before;
      if (before.empty()) {
        state[slot].fill(server_step_->InitialState(slot));
      } else {
        tensor::DecodeToDouble(state_dtype, before.data() + (tile.first + begin) * state_size,
                               count, state[slot].data());
      }
    }
    server_step_->Apply(count, global.data(), state[0].data(), state[1].data(), values.data());
    for (size_t slot = 0; slot < work.slots.size(); ++slot) {
      uint8_t* target = band.slots[slot].data() + tile.state_offset + begin * state_size;
      if (tensor::EncodeFromDouble(state_dtype, state[slot].data(), count, target) > 0) {
        return false;
      }
    }
  }
  uint8_t* target = band.output.data() + tile.output_offset + begin * ElementSize(dtype);
  return tensor::EncodeFromDouble(dtype, values.data(), count, target) == 0;
}

Status TilePass::WriteBand(const Band& band, PassFiles& files) {
  if (band.tiles.empty()) return base::OkStatus();
  FL_RETURN_IF_ERROR(files.output.Append(band.output));
  for (const Tile& tile : band.tiles) {
    const Work& work = *tile.work;
    for (size_t slot = 0; slot < work.slots.size(); ++slot) {
      const size_t size = ElementSize(StateDType(work.info->dtype));
      FL_RETURN_IF_ERROR(files.state->WriteAt(
          work.slots[slot].file_offset + tile.first * size,
          std::span(band.slots[slot]).subspan(tile.state_offset, tile.count * size)));
    }
  }
  return base::OkStatus();
}

}  // namespace fl::strategy::internal
