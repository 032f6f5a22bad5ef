import Foundation
import NodeTestSupport
import Testing

@testable import ReelNet

@Suite(.timeLimit(.minutes(5))) struct DescriptorShortageTests {
    // The test has a process of its own, because a shortage of descriptors would affect all tests.
    @Test("the server serves connected clients while others wait for a descriptor") func servesDuringShortage() async {
        await #expect(processExitsWith: .success) {
            let server = try EchoServer()
            let early = try RawSocket(server.address)
            func isServed(_ socket: RawSocket) -> Bool {
                socket.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
                return socket.receive(until: "hi").hasPrefix("HTTP/1.1 200")
            }
            try #require(isServed(early))

            var limit = rlimit(rlim_cur: 100, rlim_max: 100)
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            var taken: [Int32] = []
            while case let descriptor = dup(0), descriptor >= 0 { taken.append(descriptor) }
            close(taken.removeLast())
            let late = try RawSocket(server.address)
            while try server.onServer({ $0.gate.descriptorShortages }) < 2 { try #require(isServed(early)) }

            for descriptor in taken { close(descriptor) }
            try #require(isServed(late))
            try #require(isServed(early))
        }
    }
}
