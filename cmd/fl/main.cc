#include "cli/program.h"

int main(int argc, char** argv) { return fl::cli::Main(argc, argv); }
