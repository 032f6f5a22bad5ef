// device-writer WORK STORE SCRIPT HEAD [FAULT N]: a device that a test starts, and that is killed at a chosen call.
//
// It does one piece of work (see `DeviceWork`) with a client whose store is the file STORE. The folder SCRIPT has the
// answers of its node, and HEAD is the last seq of the log before the work. The faults are in `FailingCalls`. They
// happen after N calls that change a file. The process prints a line after each step, and at its end the number of its
// calls.

import FailingCalls
import Foundation
import ReelClient
import ReelCore

let arguments = CommandLine.arguments
guard arguments.count == 5 || arguments.count == 7, let work = DeviceWork(rawValue: arguments[1]),
    let head = Seq(arguments[4])
else { exit(2) }
var (fault, call) = (FailingCalls.Fault.kill, Int.max)
if arguments.count == 7 {
    guard let given = FailingCalls.Fault(rawValue: arguments[5]), let number = Int(arguments[6]) else { exit(2) }
    (fault, call) = (given, number)
}
FailingCalls.install(fault, at: call)
do {
    try await work.run(store: arguments[2], script: NodeScript(folder: arguments[3], head: head))
    say("calls \(FailingCalls.count)")
} catch {
    say("failed \(error)")
    exit(1)
}
