#include "controller/scheduler/order.h"

#include <algorithm>
#include <map>
#include <utility>

namespace pipeyard::scheduler {
namespace {

constexpr uint64_t kGamma = 0x9e3779b97f4a7c15u;

uint64_t Fnv1a64(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  return hash;
}

uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

using Group = std::vector<uint32_t>;  // variant indexes

std::vector<Group> Groups(std::span<const OrderVariant> variants) {
  std::vector<Group> groups;
  std::map<std::string, size_t> by_comparison;
  for (const OrderVariant& variant : variants) {
    if (!variant.is_arm) {
      groups.push_back({variant.variant_index});
      continue;
    }
    const auto [it, is_new] = by_comparison.emplace(variant.comparison, groups.size());
    if (is_new) groups.emplace_back();
    groups[it->second].push_back(variant.variant_index);
  }
  return groups;
}

std::vector<OrderedTrial> Blocked(std::span<const OrderVariant> variants, uint32_t repetitions,
                                  OrderGenerator generator) {
  std::vector<Group> groups = Groups(variants);
  std::vector<OrderedTrial> order;
  order.reserve(variants.size() * repetitions);
  std::vector<uint32_t> block_order;
  for (uint32_t block = 1; block <= repetitions; ++block) {
    if (block % 2 == 1) {
      generator.Shuffle(groups);
      block_order.clear();
      for (Group& group : groups) {
        generator.Shuffle(group);
        block_order.insert(block_order.end(), group.begin(), group.end());
      }
    } else {
      std::ranges::reverse(block_order);
    }
    for (const uint32_t variant : block_order) order.push_back({variant, block, block});
  }
  return order;
}

}  // namespace

OrderGenerator::OrderGenerator(uint64_t seed, std::string_view host_id)
    : state_(seed ^ Fnv1a64(host_id)) {}

uint64_t OrderGenerator::Next() {
  state_ += kGamma;
  return Mix(state_);
}

uint64_t OrderGenerator::Below(uint64_t n) {
  const uint64_t excess = (UINT64_MAX % n + 1) % n;  // 2^64 mod n
  uint64_t r = Next();
  while (excess != 0 && r >= UINT64_MAX - excess + 1) r = Next();
  return r % n;
}

std::vector<OrderedTrial> TrialOrder(spec::OrderKind kind, std::span<const OrderVariant> variants,
                                     uint32_t repetitions, uint64_t seed,
                                     std::string_view host_id) {
  OrderGenerator generator(seed, host_id);
  if (kind == spec::OrderKind::kBlocked) return Blocked(variants, repetitions, generator);

  std::vector<OrderedTrial> order;
  order.reserve(variants.size() * repetitions);
  for (uint32_t repetition = 1; repetition <= repetitions; ++repetition) {
    for (const OrderVariant& variant : variants) {
      order.push_back({variant.variant_index, repetition, repetition});
    }
  }
  if (kind == spec::OrderKind::kListed) return order;

  generator.Shuffle(order);
  std::map<uint32_t, uint32_t> next_index;
  for (OrderedTrial& trial : order) {
    trial.trial_index = ++next_index[trial.variant_index];
    trial.block = 1;
  }
  return order;
}

uint64_t TrialSeed(uint64_t order_seed, std::string_view host_id, uint32_t block) {
  return Mix((order_seed ^ Fnv1a64(host_id)) + kGamma * (uint64_t{block} + 1));
}

const char* Name(spec::OrderKind kind) {
  switch (kind) {
    case spec::OrderKind::kBlocked:
      return "blocked";
    case spec::OrderKind::kRandom:
      return "random";
    case spec::OrderKind::kListed:
      return "listed";
  }
  return "?";
}

}  // namespace pipeyard::scheduler
