#include "prove/choices.hpp"

#include <cmath>
#include <cstdlib>

namespace tenon::rules {

uint64_t Random::next() {  // splitmix64
  uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

double Random::draw(const std::string& d) {
  const auto open = d.find('(');
  std::vector<double> args;
  for (const char* p = d.c_str() + (open == std::string::npos ? d.size() : open + 1); *p;) {
    char* end = nullptr;
    args.push_back(std::strtod(p, &end));
    if (end == p) {
      args.pop_back();
      break;
    }
    p = *end ? end + 1 : end;
  }
  const std::string name = d.substr(0, open);
  if (name == "choice" && !args.empty()) return args[next() % args.size()];
  const double a = !args.empty() ? args[0] : 0, b = args.size() > 1 ? args[1] : 1;
  if (name == "uniform") return a + (b - a) * uniform();
  const double u = 1 - uniform(), v = uniform();  // Box-Muller
  return a + b * std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
}

size_t Choices::pick(size_t count) {
  if (at_ == made_.size()) made_.emplace_back(drawn_ ? random_.next() % count : 0, count);
  auto& [answer, of] = made_[at_++];
  of = count;
  if (answer >= count) answer = count - 1;
  return answer;
}

bool Choices::next() {
  if (drawn_) {
    made_.clear();
    at_ = 0;
    return true;
  }
  made_.resize(at_);  // what was not asked this time says nothing
  at_ = 0;
  while (!made_.empty() && made_.back().first + 1 >= made_.back().second) made_.pop_back();
  if (made_.empty()) return false;
  ++made_.back().first;
  return true;
}

void Choices::draw(uint64_t seed) {
  random_ = Random(seed);
  drawn_ = true;
  made_.clear();
  at_ = 0;
}

}  // namespace tenon::rules
