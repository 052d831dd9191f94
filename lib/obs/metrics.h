#pragma once

/// Prometheus metrics. A `Metrics` object is made once by a program and handed down; instruments
/// live as long as it does. All is thread-safe.

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fl::obs {

using Labels = std::map<std::string, std::string>;

class Counter {
 public:
  virtual ~Counter() = default;
  /// `by` ≥ 0.
  virtual void Add(double by = 1) = 0;
};

class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void Set(double value) = 0;
};

class Histogram {
 public:
  virtual ~Histogram() = default;
  virtual void Observe(double value) = 0;
};

/// Instruments by name and labels: asking twice gives the same one. Names follow Prometheus' rules
/// (base units; counters end in _total).
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Counter& AddCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge& AddGauge(const std::string& name, const std::string& help, const Labels& labels = {});
  /// `bounds`: upper bounds of the buckets, ascending.
  Histogram& AddHistogram(const std::string& name, const std::string& help,
                          const std::vector<double>& bounds, const Labels& labels = {});
  /// The text exposition format, version 0.0.4.
  std::string Serialize() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fl::obs
