import TestSupport
import Testing

@testable import ReelNet

/// Tests that bytes leave the queue in their order, however they were cut.
@Suite struct WriteQueueTests {
    @Test("bytes come out in their order") func bytesComeOutIn() {
        var random = SeededNumbers(TestSeed.value)
        let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 100, alignment: 1)
        defer { scratch.deallocate() }
        for _ in 0..<20 {
            var (queue, expected) = (WriteQueue(), [UInt8]())
            for _ in 0..<2_000 {
                if Bool.random(using: &random) {
                    let bytes = (0..<Int.random(in: 0...120, using: &random)).map { _ in
                        UInt8.random(in: .min ... .max, using: &random)
                    }
                    queue.append(bytes)
                    expected += bytes
                } else if queue.count > 0 {
                    let piece = queue.withNext(scratch: scratch) { Array($0) }
                    #expect(!piece.isEmpty)
                    #expect(expected.starts(with: piece))
                    let taken = Int.random(in: 0...piece.count, using: &random)
                    queue.consume(taken)
                    expected.removeFirst(taken)
                }
                #expect(queue.count == expected.count)
            }
        }
    }

    @Test("small arrays are joined and a large one is lent as it is") func smallArraysAreJoined() {
        let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 8, alignment: 1)
        defer { scratch.deallocate() }
        var queue = WriteQueue()
        for bytes: [UInt8] in [[1, 2], [3], [4, 5, 6, 7, 8, 9]] { queue.append(bytes) }
        #expect(queue.withNext(scratch: scratch) { Array($0) } == [1, 2, 3, 4, 5, 6, 7, 8])
        queue.consume(4)
        let (rest, isCopy) = queue.withNext(scratch: scratch) {
            (Array($0), $0.baseAddress == UnsafeRawPointer(scratch.baseAddress))
        }
        #expect(rest == [5, 6, 7, 8, 9] && !isCopy)
        queue.consume(5)
        #expect(queue.count == 0)
    }
}
