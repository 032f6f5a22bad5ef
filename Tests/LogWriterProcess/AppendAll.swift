import Foundation
import ReelLog
import Synchronization

func appendAll(_ arguments: [String]) {
    guard arguments.count == 5, let frames = Int(arguments[2]), let count = Int(arguments[4]) else { exit(2) }
    do {
        let log = try SQLiteLog(path: arguments[1], checkpointFrames: frames)
        say("ready\n")
        let places = DispatchSemaphore(value: 8)
        for i in 0..<count {
            places.wait()
            let name = "\(arguments[3]).\(i)"
            let partition = i % log.partitions
            log.append([LogAppend(key: Array("s".utf8), value: Array(name.utf8))], to: partition) { result in
                switch result {
                case .success(let seqs): say("\(partition) \(seqs[0]) \(name)\n")
                case .failure(let error): say("failed \(error)\n")
                }
                places.signal()
            }
        }
        log.close()
        say("done\n")
    } catch {
        say("failed \(error)\n")
        exit(1)
    }
}

/// Writes a line with one system call, so that a killed process leaves only whole lines.
private func say(_ line: String) {
    _ = line.withCString { write(1, $0, strlen($0)) }
}
