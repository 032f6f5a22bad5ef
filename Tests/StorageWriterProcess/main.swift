// storage-writer PATH FIRST COUNT [FAULT N]: a process that a test starts and that fails in a chosen way.
//
// It opens the SQLite storage at PATH and makes COUNT commits. FIRST is the number of the first commit (see
// `WrittenCommit`). The process prints a line for each commit: its number, the number of its waits for the disk, and
// the error code if it failed. The faults are in `FailingCalls`. They begin at the N-th call that changes a file.

import FailingCalls
import Glibc
import ReelClient
import ReelCore

let arguments = CommandLine.arguments
guard arguments.count == 4 || arguments.count == 6, let first = Int(arguments[2]), let count = Int(arguments[3]) else {
    exit(2)
}
SyncCounter.install()
if arguments.count == 6 {
    guard let fault = FailingCalls.Fault(rawValue: arguments[4]), let call = Int(arguments[5]) else { exit(2) }
    FailingCalls.install(fault, at: call)
}
do {
    let storage = try SQLiteStorage(path: arguments[1])
    for number in first..<(first + count) {
        let before = SyncCounter.count
        do {
            try storage.commit(WrittenCommit.changes(number), durably: WrittenCommit.isDurable(number))
            say("\(number) \(SyncCounter.count - before)\n")
        } catch {
            say("\(number) \(SyncCounter.count - before) \(error.code.rawValue)\n")
        }
    }
    storage.close()
    say("closed\n")
} catch {
    say("\(error.code.rawValue)\n")
}

/// Writes a line with one call, so that a killed process leaves only complete lines.
func say(_ line: String) {
    _ = line.withCString { write(1, $0, strlen($0)) }
}
