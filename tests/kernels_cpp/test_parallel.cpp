#include "lockstep.hpp"
#include "parallel.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "check.hpp"

using tasksieve::index_t;
using tasksieve::parallel_for;

namespace {

// sum of 0 .. count - 1, by chunks that each write their own place
index_t chunked_sum(index_t count, index_t grain, int threads) {
    std::vector<index_t> parts((count + grain - 1) / grain, -1);
    parallel_for(count, grain, threads, [&](index_t begin, index_t end) {
        index_t sum = 0;
        for (index_t i = begin; i < end; ++i) sum += i;
        parts[begin / grain] = sum;
    });
    index_t total = 0;
    for (index_t part : parts) total += part;
    return total;
}

index_t sum_below(index_t count) { return count * (count - 1) / 2; }

}  // namespace

TEST(threads_that_cannot_be_started_are_done_without) {
    const index_t before = tasksieve::standing_threads();
    const int more = static_cast<int>(before) + 3;  // the caller and two new ones
    tasksieve::allow_new_threads(false);
    CHECK(chunked_sum(1000, 3, more) == sum_below(1000));
    CHECK(tasksieve::standing_threads() == before);
    tasksieve::allow_new_threads(true);
    CHECK(chunked_sum(1000, 3, more) == sum_below(1000));
    CHECK(tasksieve::standing_threads() == before + 2);
}

TEST(shares_of_a_step_see_what_was_written_before_it) {
    for (int threads : {-1, 1, 2, 3, 40}) {
        tasksieve::Lockstep team(threads);
        const int shares = team.shares();
        std::vector<index_t> own(shares, 0);
        index_t given = 0;
        bool as_expected = true;
        const auto work = [&](int share) { own[share] += given; };
        team.run(
            [&] {
                index_t total = 0;
                for (index_t step = 1; step <= 2000; ++step) {
                    total += given = step;
                    team.step(work);
                    for (index_t value : own) as_expected = as_expected && value == total;
                }
            },
            work);
        CHECK(as_expected);
        CHECK(own[shares - 1] == sum_below(2001));
    }
}

TEST(a_leader_that_throws_sends_its_helpers_away) {
    tasksieve::Lockstep team(3);
    bool thrown = false;
    const auto work = [](int) {};
    try {
        team.run(
            [&] {
                team.step(work);
                throw std::runtime_error("as it should");
            },
            work);
    } catch (const std::runtime_error &) {
        thrown = true;
    }
    CHECK(thrown);
}

TEST(every_chunk_runs_once) {
    for (int threads : {-1, 0, 1, 2, 5})
        for (index_t count : {0, 1, 2, 7, 64, 1001})
            for (index_t grain : {-3, 0, 1, 2, 7, 5000}) {
                std::vector<int> visits(count, 0);
                parallel_for(count, grain, threads, [&](index_t begin, index_t end) {
                    CHECK(begin < end && (grain < 1 ? begin + 1 == end : begin % grain == 0 && end - begin <= grain));
                    for (index_t i = begin; i < end; ++i) ++visits[i];
                });
                for (int visit : visits) CHECK(visit == 1);
            }
}

TEST(what_a_body_throws_reaches_the_caller) {
    for (int threads : {1, 2, 4})
        for (index_t where : {0, 17, 99}) {
            std::atomic<int> after{0};
            bool caught = false;
            try {
                parallel_for(100, 1, threads, [&](index_t begin, index_t) {
                    if (begin == where) throw std::out_of_range("here");
                    ++after;
                });
            } catch (const std::out_of_range &error) {
                caught = std::string(error.what()) == "here";
            }
            CHECK(caught);
            CHECK(after < 100);
            CHECK(chunked_sum(500, 1, threads) == sum_below(500));  // the threads are still there
        }
    int caught = 0;  // all of them throw
    for (int k = 0; k < 200; ++k) try {
            parallel_for(8, 1, 4, [&](index_t, index_t) { throw std::bad_alloc(); });
        } catch (const std::bad_alloc &) {
            ++caught;
        }
    CHECK(caught == 200);
}

TEST(a_loop_inside_a_loop_runs_on_its_thread) {
    std::vector<index_t> sums(40, 0);
    parallel_for(40, 1, 4, [&](index_t begin, index_t) {
        const auto me = std::this_thread::get_id();
        parallel_for(50, 1, 4, [&](index_t i, index_t) {
            CHECK(std::this_thread::get_id() == me);
            sums[begin] += i;
        });
    });
    for (index_t sum : sums) CHECK(sum == sum_below(50));
}

TEST(many_callers_at_once) {
    std::atomic<int> wrong{0};
    std::vector<std::thread> callers;
    for (int c = 0; c < 6; ++c)
        callers.emplace_back([&, c] {
            for (int k = 0; k < 200; ++k) {
                const index_t count = 1 + 37 * c + k;
                if (chunked_sum(count, 1 + k % 5, 2 + c % 3) != sum_below(count)) ++wrong;
                if (k % 50 == c) try {
                        parallel_for(20, 1, 3, [](index_t begin, index_t) {
                            if (begin == 11) throw std::runtime_error("eleven");
                        });
                        ++wrong;
                    } catch (const std::runtime_error &) {
                    }
            }
        });
    for (auto &caller : callers) caller.join();
    CHECK(wrong == 0);
}

TEST(a_forked_child_has_threads_of_its_own) {
    CHECK(chunked_sum(1000, 1, 3) == sum_below(1000));
    std::atomic<bool> done{false};
    std::thread busy([&] {  // the pool is in use, its lock perhaps held, while the process forks
        while (!done) chunked_sum(200, 1, 3);
    });
    for (int k = 0; k < 5; ++k) {
        const pid_t child = fork();
        if (child == 0) {
            const bool none = tasksieve::standing_threads() == 0;
            const bool right = chunked_sum(1000, 1, 3) == sum_below(1000) && tasksieve::standing_threads() == 2;
            _exit(none && right ? 0 : 1);
        }
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK(chunked_sum(1000, 1, 3) == sum_below(1000));
    }
    done = true;
    busy.join();
}
