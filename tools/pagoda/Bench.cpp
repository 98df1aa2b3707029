#include "tools/pagoda/Commands.h"
using namespace llvm;
namespace pagoda {
cl::SubCommand &benchCommand() {
  static cl::SubCommand command("bench", "x");
  return command;
}
llvm::Error bench() { return llvm::Error::success(); }
} // namespace pagoda
