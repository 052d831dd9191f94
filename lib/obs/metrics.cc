#include "obs/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <mutex>
#include <utility>

namespace fl::obs {
namespace {

class PrometheusCounter final : public Counter {
 public:
  explicit PrometheusCounter(prometheus::Counter& counter) : counter_(counter) {}
  void Add(double by) override { counter_.Increment(by); }

 private:
  prometheus::Counter& counter_;
};

class PrometheusGauge final : public Gauge {
 public:
  explicit PrometheusGauge(prometheus::Gauge& gauge) : gauge_(gauge) {}
  void Set(double value) override { gauge_.Set(value); }

 private:
  prometheus::Gauge& gauge_;
};

class PrometheusHistogram final : public Histogram {
 public:
  explicit PrometheusHistogram(prometheus::Histogram& histogram) : histogram_(histogram) {}
  void Observe(double value) override { histogram_.Observe(value); }

 private:
  prometheus::Histogram& histogram_;
};

template <typename Instrument>
using Instruments = std::map<std::pair<std::string, Labels>, std::unique_ptr<Instrument>>;

}  // namespace

struct Metrics::State {
  std::mutex mutex;
  prometheus::Registry registry;
  Instruments<Counter> counters;
  Instruments<Gauge> gauges;
  Instruments<Histogram> histograms;

  template <typename Instrument, typename Make>
  Instrument& FindOrMake(Instruments<Instrument>& all, const std::string& name,
                         const Labels& labels, Make make) {
    const std::lock_guard lock(mutex);
    std::unique_ptr<Instrument>& slot = all[{name, labels}];
    if (slot == nullptr) slot = make();
    return *slot;
  }
};

Metrics::Metrics() : state_(std::make_unique<State>()) {}
Metrics::~Metrics() = default;

Counter& Metrics::AddCounter(const std::string& name, const std::string& help,
                             const Labels& labels) {
  return state_->FindOrMake(state_->counters, name, labels, [&] {
    return std::make_unique<PrometheusCounter>(
        prometheus::BuildCounter().Name(name).Help(help).Register(state_->registry).Add(labels));
  });
}

Gauge& Metrics::AddGauge(const std::string& name, const std::string& help, const Labels& labels) {
  return state_->FindOrMake(state_->gauges, name, labels, [&] {
    return std::make_unique<PrometheusGauge>(
        prometheus::BuildGauge().Name(name).Help(help).Register(state_->registry).Add(labels));
  });
}

Histogram& Metrics::AddHistogram(const std::string& name, const std::string& help,
                                 const std::vector<double>& bounds, const Labels& labels) {
  return state_->FindOrMake(state_->histograms, name, labels, [&] {
    return std::make_unique<PrometheusHistogram>(prometheus::BuildHistogram()
                                                     .Name(name)
                                                     .Help(help)
                                                     .Register(state_->registry)
                                                     .Add(labels, bounds));
  });
}

std::string Metrics::Serialize() const {
  return prometheus::TextSerializer().Serialize(state_->registry.Collect());
}

}  // namespace fl::obs
