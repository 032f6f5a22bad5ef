import Glibc

exit(await CommandLineTool.run().rawValue)
