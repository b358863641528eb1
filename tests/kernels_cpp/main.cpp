// All tests, or those whose name holds the argument.
#include <cstring>

#include "check.hpp"

int main(int count, char **arguments) {
    for (const auto &test : check::all()) {
        if (count > 1 && !std::strstr(test.name, arguments[1])) continue;
        const int before = check::failures;
        test.run();
        std::printf("%s %s\n", check::failures == before ? "ok    " : "FAILED", test.name);
        std::fflush(stdout);
    }
    return check::failures != 0;
}
