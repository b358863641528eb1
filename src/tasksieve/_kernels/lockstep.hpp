// Threads in lockstep: a leader that takes many short steps one after the other, each cut into shares of equal work.
//
// A step is a few microseconds, too short to wake a thread for. So helpers, once they have come, watch for the next step
// and answer when their share of it is done; shares whose helper has not come, or was sent away, are the leader's. A
// helper that lets the leader wait (its processor is busy with something else) is sent away for good.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "parallel.hpp"

namespace tasksieve {

class Lockstep {
  public:
    static constexpr int kMost = 16;  // shares

    explicit Lockstep(int shares) : shares_(std::min(std::max(shares, 1), kMost)) {}
    Lockstep(const Lockstep &) = delete;
    Lockstep &operator=(const Lockstep &) = delete;

    int shares() const { return shares_; }

    // lead() once, on one of the threads; work(share) for every share of every step that it takes by `step`.
    template <class Lead, class Work>
    void run(const Lead &lead, const Work &work) {
        parallel_for(shares_, 1, shares_, [&](index_t begin, index_t end) {
            for (index_t share = begin; share < end; ++share) {
                if (share == 0) {
                    const End end_of_steps{*this};  // also where lead throws: no helper waits for more steps
                    lead();
                } else {
                    help(seats_[share], int(share), work);
                }
            }
        });
    }

    // Only from `lead`: every share of a step once. What was written before is seen by all shares, and what these write
    // is seen after.
    template <class Work>
    void step(const Work &work) {
        for (int share = 1; share < shares_; ++share) {
            Seat &seat = seats_[share];
            if (!seat.engaged && !seat.away) seat.engaged = seat.taken.load(std::memory_order_acquire);
            if (seat.engaged) seat.told.store(++seat.asked, std::memory_order_release);
        }
        work(0);
        for (int share = 1; share < shares_; ++share)
            if (!seats_[share].engaged) work(share);
        for (int share = 1; share < shares_; ++share) {
            Seat &seat = seats_[share];
            if (!seat.engaged) continue;
            if (!watch([&] { return seat.answered.load(std::memory_order_acquire) == seat.asked; })) {
                while (seat.answered.load(std::memory_order_acquire) != seat.asked) std::this_thread::yield();
                seat.told.store(kOver, std::memory_order_release);
                seat.engaged = false;
                seat.away = true;
            }
        }
    }

  private:
    static constexpr std::int64_t kOver = -1;
    static constexpr int kSpins = 50;
    static constexpr std::chrono::microseconds kPatience{200};

    struct alignas(64) Seat {
        std::atomic<bool> taken{false};         // its helper has come
        std::atomic<std::int64_t> told{0};      // the step to take, or kOver
        alignas(64) std::atomic<std::int64_t> answered{0};
        alignas(64) std::int64_t asked = 0;     // these are the leader's
        bool engaged = false, away = false;
    };

    struct End {
        Lockstep &all;
        ~End() {
            for (int share = 1; share < all.shares_; ++share) all.seats_[share].told.store(kOver, std::memory_order_release);
        }
    };

    // Whether something has come true within the time that is waited for it without giving the processor away.
    template <class Condition>
    static bool watch(const Condition &holds) {
        const auto soon = [&] {
            for (int spin = 0; spin < kSpins; ++spin) {
                if (holds()) return true;
                pause_a_moment();
            }
            return false;
        };
        if (soon()) return true;
        const auto began = std::chrono::steady_clock::now();
        while (std::chrono::steady_clock::now() - began < kPatience)
            if (soon()) return true;
        return holds();
    }

    template <class Work>
    static void help(Seat &seat, int share, const Work &work) {
        seat.taken.store(true, std::memory_order_release);
        for (std::int64_t known = 0;;) {
            const auto changed = [&] { return seat.told.load(std::memory_order_acquire) != known; };
            if (!watch(changed)) {
                std::this_thread::yield();
                continue;
            }
            known = seat.told.load(std::memory_order_acquire);
            if (known == kOver) return;
            work(share);
            seat.answered.store(known, std::memory_order_release);
        }
    }

    const int shares_;
    Seat seats_[kMost];
};

}  // namespace tasksieve
