import Foundation
import Testing

@testable import ReelNet

@Suite struct HTTPServerTests {
    @Test func answersRequestsThatComeInOnePacketOneByOne() throws {
        let server = try EchoServer()
        let socket = try RawSocket(server.address)
        socket.send(
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\none"
                + "GET /later HTTP/1.1\r\nHost: a\r\n\r\n"
                + "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nthree"
        )
        let answer = socket.receiveAll()
        let bodies = answer.components(separatedBy: "\r\n\r\n").dropFirst().map {
            $0.components(separatedBy: "HTTP")[0]
        }
        #expect(bodies == ["one", "7", "three"])
        #expect(answer.components(separatedBy: "connection: close").count == 2)
    }

    @Test func streamsMoreThanTheKernelTakesToASlowReader() throws {
        let server = try EchoServer()
        let socket = try RawSocket(server.address)
        socket.send("GET /stream?bytes=20000000 HTTP/1.0\r\n\r\n")
        #expect(socket.receive(until: "\r\n\r\n").contains("200 OK"))
        #expect(socket.receiveAll().utf8.count > 19_000_000)
    }
}
