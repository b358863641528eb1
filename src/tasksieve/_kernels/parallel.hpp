// Loops split over threads. The threads are started once, when they are first needed, and then wait for work.
#pragma once

#include "common.hpp"

namespace tasksieve {

// What a loop over chunks needs to know of its body.
struct ChunkBody {
    const void *body;
    void (*run)(const void *body, index_t begin, index_t end);
};

// The loop on several threads, the caller among them: see `parallel_for`.
void run_chunks(index_t count, index_t grain, index_t chunks, int threads, ChunkBody body);

// Runs body(begin, end) over [0, count) in chunks of `grain`, on up to `threads` threads: on fewer where the system
// starts no more, or others use them. Each output belongs to one chunk, so results depend on the chunks alone. Where a
// body throws, no further chunk is begun, and the caller gets the exception. Inside a body the loop runs on its thread.
template <class Body>
void parallel_for(index_t count, index_t grain, int threads, const Body &body) {
    grain = std::max<index_t>(grain, 1);
    const index_t chunks = (count + grain - 1) / grain;
    if (std::min<index_t>(threads, chunks) <= 1) {
        for (index_t c = 0; c < chunks; ++c) body(c * grain, std::min(count, (c + 1) * grain));
        return;
    }
    run_chunks(count, grain, chunks, threads, {&body, [](const void *it, index_t begin, index_t end) {
                                                   (*static_cast<const Body *>(it))(begin, end);
                                               }});
}

// Waiting threads at this moment, and a refusal of new ones (for tests).
index_t standing_threads();
void allow_new_threads(bool allow);

}  // namespace tasksieve
