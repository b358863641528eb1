#include "parallel.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#endif

namespace tasksieve {

namespace {

thread_local bool inside_a_body = false;
std::atomic<bool> may_start{true};

// One loop, on its caller's stack. All but `next` and `failed` is guarded by the pool's lock.
struct Job {
    index_t count, grain, chunks;
    ChunkBody body;
    index_t places;       // threads that may still join
    index_t helpers = 0;  // threads at work on it, the caller not counted
    std::atomic<index_t> next{0};
    std::atomic<bool> failed{false};
    std::exception_ptr error{};
    std::condition_variable left{};

    // Chunks until there is none left. What a body throws is returned.
    std::exception_ptr work() noexcept {
        inside_a_body = true;
        std::exception_ptr thrown;
        try {
            for (index_t c = next.fetch_add(1); c < chunks && !failed; c = next.fetch_add(1))
                body.run(body.body, c * grain, std::min(count, (c + 1) * grain));
        } catch (...) {
            failed = true;
            thrown = std::current_exception();
        }
        inside_a_body = false;
        return thrown;
    }
};

class Pool {
  public:
    void run(Job &job) {
        const index_t wanted = job.places;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            while (index_t(threads_.size()) < wanted && start_one()) continue;
            open_.push_back(&job);
        }
        for (index_t k = 0; k < wanted; ++k) wake_.notify_one();
        std::exception_ptr error = job.work();
        std::unique_lock<std::mutex> lock(mutex_);
        // Whoever has not joined by now is not waited for.
        open_.erase(std::remove(open_.begin(), open_.end(), &job), open_.end());
        job.left.wait(lock, [&] { return job.helpers == 0; });
        if (!error) error = job.error;
        lock.unlock();
        if (error) std::rethrow_exception(error);
    }

    index_t size() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return threads_.size();
    }

    // Callers that come later, or are still at work, go on alone.
    void stop() {
        std::vector<std::thread> threads;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            stopping_ = true;
            threads.swap(threads_);
        }
        wake_.notify_all();
        for (auto &thread : threads) thread.join();
    }

  private:
    bool start_one() {
        if (stopping_ || !may_start) return false;
        try {
            threads_.emplace_back([this] { stand(); });
            return true;
        } catch (const std::exception &) {  // the system's limit on threads or memory
            return false;
        }
    }

    void stand() {
#if !defined(_WIN32)
        // Signals are for the threads of the program that has the kernels; faults must still end it.
        sigset_t signals;
        sigfillset(&signals);
        for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&signals, fault);
        pthread_sigmask(SIG_BLOCK, &signals, nullptr);
#endif
        std::unique_lock<std::mutex> lock(mutex_);
        while (true) {
            wake_.wait(lock, [&] { return stopping_ || !open_.empty(); });
            if (stopping_) return;
            Job &job = *open_.front();
            ++job.helpers;
            if (--job.places == 0) open_.erase(open_.begin());
            lock.unlock();
            const std::exception_ptr error = job.work();
            lock.lock();
            if (error && !job.error) job.error = error;
            if (--job.helpers == 0) job.left.notify_one();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<Job *> open_;  // loops that a thread may join
    std::vector<std::thread> threads_;
    bool stopping_ = false;
};

// Never deleted: a thread that outlives the program's end may still look at it. After a fork the child has none of the
// threads, and the lock may be held by one of them, so it leaves that pool alone and makes another when it needs one.
std::atomic<Pool *> current{nullptr};

Pool &pool() {
    if (Pool *known = current.load()) return *known;
    Pool *fresh = new Pool, *known = nullptr;
    if (current.compare_exchange_strong(known, fresh)) return *fresh;
    delete fresh;
    return *known;
}

struct Life {
    Life() {
#if !defined(_WIN32)
        pthread_atfork(nullptr, nullptr, [] { current.store(nullptr); });
#endif
    }
    ~Life() {
        if (Pool *known = current.load()) known->stop();
    }
} life;

}  // namespace

void run_chunks(index_t count, index_t grain, index_t chunks, int threads, ChunkBody body) {
    Job job{count, grain, chunks, body, inside_a_body ? 0 : std::min<index_t>(threads, chunks) - 1};
    if (job.places > 0) return pool().run(job);
    for (index_t c = 0; c < chunks; ++c) body.run(body.body, c * grain, std::min(count, (c + 1) * grain));
}

index_t standing_threads() { return pool().size(); }

void allow_new_threads(bool allow) { may_start = allow; }

}  // namespace tasksieve
