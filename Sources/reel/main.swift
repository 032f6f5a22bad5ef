import Glibc

let code = await CommandLineTool.run()
fflush(nil)
// Not `exit`: it would tear libraries down while other threads still run in them.
_exit(code.rawValue)
