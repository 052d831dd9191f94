#!/usr/bin/env bash
# Prints what this project promises about speed, memory and accuracy as one JSON document: our figure
# and its limit, or the peer's, from the same run. test/bench/README.md says what each figure is.
#
#     test/bench/run.sh                      all of them, some ten minutes on a quiet machine
#     test/bench/run.sh --quick              small sizes: shows that everything works, judges no speed
#     test/bench/run.sh --only rounds_small,agents_200
#     test/bench/run.sh --folder DIR         where to work (default $TMPDIR): 44 GB for rounds_2gb
#     test/bench/run.sh --out FILE           writes the document there too
#     test/bench/run.sh --programs DIR       default build/release/bin; the measurements are in DIR/../test
#     test/bench/run.sh --mcmahan            runs mcmahan.sh (half an hour) instead of reading its record
#     test/bench/run.sh --with-peers         runs Flower's rounds too (pip install flwr into $FL_TEST_CACHE)
#
# Exit status: 0 if all is within its limits, 1 if not, 4 for a wrong option or a missing build.
exec python3 -B "$(dirname "$0")/figures.py" "$@"
